#include "output.hpp"

#include "complain.hpp"
#include "errors.hpp"
#include "format.hpp"
#include "release.hpp"

#include <ns3/simulator.h>

#include <unistd.h>

#include <algorithm>

namespace replicate
{
namespace
{

double Seconds(std::int64_t ns)
{
    return static_cast<double>(ns) / 1e9;
}

/// a / b as text; empty where b is zero.
std::string Ratio(double a, double b)
{
    return b == 0 ? "" : Shortest(a / b);
}

} // namespace

AtomicFile::AtomicFile(const std::filesystem::path& directory, const std::string& name)
    : m_final(directory / name),
      m_temporary(directory / ("." + name + "." + std::to_string(getpid()) + ".tmp"))
{
    RegisterUnfinished(m_temporary);
    m_file.open(m_temporary, std::ios::binary | std::ios::trunc);
    if (!m_file)
        throw InputError(m_temporary.string() +
                         ": cannot be created: give a writable directory to --output");
}

AtomicFile::~AtomicFile()
{
    m_file.close();
    std::error_code ignored;
    if (!m_committed)
        std::filesystem::remove(m_temporary, ignored);
}

void AtomicFile::Write(const std::string& text)
{
    m_file << text;
}

void AtomicFile::Commit()
{
    m_file.close();
    std::error_code error;
    if (m_file)
        std::filesystem::rename(m_temporary, m_final, error);
    if (!m_file || error)
        throw InputError(m_final.string() + ": cannot be written: free some space in --output");
    m_committed = true;
}

Sampler::Sampler(const Scenario& scenario, const Topology& topology, const Flows& flows,
                 Metrics& metrics, AtomicFile& file)
    : m_scenario(scenario), m_topology(topology), m_flows(flows), m_metrics(metrics), m_file(file),
      m_socket_samples(std::any_of(scenario.flows.begin(), scenario.flows.end(),
                                   [](const FlowSpec& spec) { return spec.socket_samples; }))
{
    m_file.Write(
        "time_s,flow,link,throughput_bps,cwnd_bytes,ssthresh_bytes,rtt_s,delay_s,"
        "queue_packets,drops,retransmissions" +
        std::string(m_socket_samples ? ",goodput_bps,delivery_rate_bps,pacing_rate_bps" : "") +
        "\n");
    Schedule();
}

/// The sample at the very end is left to Finish(), which runs after every event of that instant.
void Sampler::Schedule()
{
    m_next_ns += m_scenario.sampling_interval_ns;
    if (m_next_ns < m_scenario.duration_ns)
        ns3::Simulator::Schedule(ns3::NanoSeconds(m_scenario.sampling_interval_ns),
                                 &Sampler::Sample, this);
}

void Sampler::Sample()
{
    const std::string time = DecimalSeconds(m_next_ns);
    for (std::uint32_t i = 0; i < m_scenario.flows.size(); ++i)
        m_file.Write(time + "," + FlowRow(i));
    for (const auto& monitor : m_scenario.monitors)
        m_file.Write(time + "," + MonitorRow(monitor));
    Schedule();
}

void Sampler::Finish()
{
    if (m_next_ns == m_scenario.duration_ns)
        Sample();
}

std::string Sampler::FlowRow(std::uint32_t flow)
{
    auto& counters = m_metrics.Flow(flow);
    const FlowInterval interval = counters.interval;
    counters.interval = {};
    const double span = Seconds(m_scenario.sampling_interval_ns);
    std::string cwnd, ssthresh, rtt;
    if (const auto* sender = m_flows.ActiveSender(flow)) {
        cwnd = std::to_string(sender->Cwnd());
        if (const auto threshold = sender->Ssthresh())
            ssthresh = std::to_string(*threshold);
        if (counters.rtt_samples > 0)
            rtt = Shortest(Seconds(counters.last_rtt_ns));
    }
    return m_scenario.flows[flow].id + ",," +
           Shortest(static_cast<double>(interval.ip_bytes) * 8 / span) + "," + cwnd + "," +
           ssthresh + "," + rtt + "," +
           Ratio(Seconds(interval.delay_ns), static_cast<double>(interval.received)) + ",," +
           std::to_string(interval.drops) + "," + std::to_string(interval.retransmissions) +
           SocketCells(m_scenario.flows[flow].socket_samples
                           ? Shortest(static_cast<double>(interval.application_bytes) * 8 / span)
                           : "") +
           "\n";
}

/// What samples of sockets add to a row; ns-3's know no delivery rate and no pacing rate.
std::string Sampler::SocketCells(const std::string& goodput) const
{
    return m_socket_samples ? "," + goodput + ",," : "";
}

std::string Sampler::MonitorRow(const DirectionSpec& monitor)
{
    auto& link = m_metrics.Link(monitor.link, monitor.direction);
    const double span = Seconds(m_scenario.sampling_interval_ns);
    const auto bits = static_cast<double>(link.interval_ip_bytes) * 8;
    const auto drops = link.interval_drops;
    link.interval_ip_bytes = link.interval_drops = 0;
    return "," + m_scenario.links[monitor.link].id + (monitor.direction == 0 ? ":ab," : ":ba,") +
           Shortest(bits / span) + ",,,,," +
           std::to_string(m_topology.Link(monitor.link, monitor.direction).Waiting()) + "," +
           std::to_string(drops) + "," + SocketCells("") + "\n";
}

std::string FlowsCsv(const Scenario& scenario, Metrics& metrics)
{
    std::string text = "flow,kind,throughput_bps,goodput_bps,delay_mean_s,delay_p95_s,rtt_mean_s,"
                       "packets_sent,packets_received,packets_dropped,packets_in_flight,"
                       "retransmissions,timeouts,loss_rate,delivery_ratio";
    const bool transfers =
        std::any_of(scenario.flows.begin(), scenario.flows.end(),
                    [](const FlowSpec& spec) { return spec.stop_after_bytes.has_value(); });
    text += transfers ? ",completion_time_s\n" : "\n";
    for (std::uint32_t i = 0; i < scenario.flows.size(); ++i) {
        const auto& spec = scenario.flows[i];
        const auto& flow = metrics.Flow(i);
        const double active = Seconds(flow.stop_ns - spec.start_ns);
        const auto sent = static_cast<double>(flow.sent);
        text += spec.id + (spec.tcp ? ",tcp," : ",cbr,") +
                Shortest(static_cast<double>(flow.ip_bytes) * 8 / active) + "," +
                Shortest(static_cast<double>(flow.application_bytes) * 8 / active) + "," +
                Ratio(Seconds(flow.delay_ns), static_cast<double>(flow.received)) + "," +
                (flow.received ? Shortest(flow.delays.QuantileSeconds(0.95)) : "") + "," +
                Ratio(Seconds(flow.rtt_ns), static_cast<double>(flow.rtt_samples)) + "," +
                std::to_string(flow.sent) + "," + std::to_string(flow.received) + "," +
                std::to_string(flow.dropped) + "," + std::to_string(flow.on_wire + flow.in_queues) +
                "," + std::to_string(flow.retransmissions) + "," + std::to_string(flow.timeouts) +
                "," + Ratio(static_cast<double>(flow.dropped), sent) + "," +
                Ratio(static_cast<double>(flow.received), sent) + (transfers ? "," : "") +
                (flow.Complete() ? Shortest(active) : "") + "\n";
    }
    return text;
}

std::string RunJson(const Scenario& scenario, Metrics& metrics, std::uint64_t events)
{
    std::uint64_t sent = 0, received = 0, dropped = 0;
    std::int64_t in_flight = 0;
    for (std::uint32_t i = 0; i < scenario.flows.size(); ++i) {
        const auto& flow = metrics.Flow(i);
        sent += flow.sent, received += flow.received, dropped += flow.dropped;
        in_flight += flow.on_wire + flow.in_queues;
    }
    std::uint64_t hops = 0;
    for (std::uint32_t i = 0; i < scenario.links.size(); ++i)
        hops += metrics.Link(i, 0).packets + metrics.Link(i, 1).packets;
    const auto member = [](const char* key, const std::string& value) {
        return std::string("  \"") + key + "\": " + value;
    };
    return "{\n" + member("engine", "\"ns3\"") + ",\n" +
           member("version", "\"" + std::string(kSimulatorVersion) + "\"") + ",\n" +
           member("scenario", "\"" + scenario.sha256.substr(0, 16) + "\"") + ",\n" +
           member("scenario_sha256", "\"" + scenario.sha256 + "\"") + ",\n" +
           member("duration_s", DecimalSeconds(scenario.duration_ns)) + ",\n" +
           member("seed", std::to_string(scenario.seed)) + ",\n" +
           member("events", std::to_string(events)) + ",\n" +
           member("data_packets_sent", std::to_string(sent)) + ",\n" +
           member("data_packets_received", std::to_string(received)) + ",\n" +
           member("data_packets_dropped", std::to_string(dropped)) + ",\n" +
           member("data_packets_in_flight", std::to_string(in_flight)) + ",\n" +
           member("control_packets_dropped", std::to_string(metrics.ControlDropped())) + ",\n" +
           member("link_transmissions", std::to_string(hops)) + "\n}\n";
}

} // namespace replicate
