#include "metrics.hpp"

#include "errors.hpp"
#include "flow_tag.hpp"

#include <ns3/simulator.h>

#include <algorithm>
#include <cmath>

namespace replicate
{
namespace
{

/// Framing that the point-to-point device adds to an IP packet.
constexpr std::uint32_t kPppHeaderBytes = 2;

std::int64_t NowNs()
{
    return ns3::Simulator::Now().GetNanoSeconds();
}

} // namespace

void DelayHistogram::Add(std::int64_t delay_ns)
{
    const auto bin = delay_ns / kBinNs;
    const auto index = bin / kPageBins;
    if (index != m_last_index) {
        auto& page = m_pages[index];
        if (!page)
            page = std::make_unique<Page>();
        m_last = page.get();
        m_last_index = index;
    }
    ++(*m_last)[bin % kPageBins];
    ++m_count;
    m_largest_ns = std::max(m_largest_ns, delay_ns);
}

double DelayHistogram::QuantileSeconds(double quantile) const
{
    const auto wanted =
        static_cast<std::uint64_t>(std::ceil(quantile * static_cast<double>(m_count)));
    std::uint64_t seen = 0;
    for (const auto& [index, page] : m_pages)
        for (std::int64_t bin = 0; bin < kPageBins; ++bin) {
            seen += (*page)[bin];
            if (seen >= wanted)
                return static_cast<double>(
                           std::min((index * kPageBins + bin + 1) * kBinNs, m_largest_ns)) /
                       1e9;
        }
    return static_cast<double>(m_largest_ns) / 1e9;
}

Metrics::Metrics(const Scenario& scenario)
    : m_flows(scenario.flows.size()), m_links(2 * scenario.links.size())
{
    for (std::size_t i = 0; i < m_flows.size(); ++i) {
        m_flows[i].stop_ns = scenario.flows[i].stop_ns;
        m_flows[i].stop_after_bytes = scenario.flows[i].stop_after_bytes.value_or(0);
    }
}

FlowCounters* Metrics::Tagged(const ns3::Ptr<const ns3::Packet>& packet)
{
    FlowTag tag;
    return packet->PeekPacketTag(tag) ? &m_flows[tag.Flow()] : nullptr;
}

void Metrics::Sent(std::uint32_t flow, ns3::Ptr<const ns3::Packet> packet)
{
    packet->AddPacketTag(FlowTag(flow, NowNs()));
    ++m_flows[flow].sent;
}

void Metrics::Delivered(const ns3::Ipv4Header& header, ns3::Ptr<const ns3::Packet> packet,
                        std::uint32_t)
{
    FlowTag tag;
    if (!packet->PeekPacketTag(tag))
        return;
    FlowCounters& flow = m_flows[tag.Flow()];
    const auto now = NowNs();
    const auto delay = now - tag.SentNs();
    const std::uint64_t bytes = packet->GetSize() + header.GetSerializedSize();
    ++flow.received;
    flow.delay_ns += delay;
    flow.delays.Add(delay);
    if (now <= flow.stop_ns)
        flow.ip_bytes += bytes;
    ++flow.interval.received;
    flow.interval.ip_bytes += bytes;
    flow.interval.delay_ns += delay;
}

void Metrics::ApplicationReceived(std::uint32_t flow, std::uint64_t bytes)
{
    FlowCounters& counters = m_flows[flow];
    const auto now = NowNs();
    if (now > counters.stop_ns)
        return;
    counters.application_bytes += bytes;
    counters.interval.application_bytes += bytes;
    if (counters.Complete())
        counters.stop_ns = now;
}

void Metrics::RttSample(std::uint32_t flow, std::int64_t rtt_ns)
{
    m_flows[flow].rtt_ns += rtt_ns;
    ++m_flows[flow].rtt_samples;
    m_flows[flow].last_rtt_ns = rtt_ns;
}

void Metrics::TransmissionBegan(Metrics* self, LinkCounters* link,
                                ns3::Ptr<const ns3::Packet> packet)
{
    ++link->packets;
    if (auto* flow = self->Tagged(packet))
        ++flow->on_wire;
}

void Metrics::TransmissionEnded(LinkCounters* link, ns3::Ptr<const ns3::Packet> packet)
{
    link->interval_ip_bytes += packet->GetSize() - kPppHeaderBytes;
}

void Metrics::Arrived(Metrics* self, ns3::Ptr<const ns3::Packet> packet)
{
    if (auto* flow = self->Tagged(packet))
        --flow->on_wire;
}

void Metrics::LostOnLink(Metrics* self, LinkCounters* link, ns3::Ptr<const ns3::Packet> packet)
{
    Arrived(self, packet);
    self->Dropped(link, packet);
}

void Metrics::DroppedByDevice(Metrics* self, LinkCounters* link, ns3::Ptr<const ns3::Packet> packet)
{
    self->Dropped(link, packet);
}

void Metrics::DroppedByDisc(Metrics* self, LinkCounters* link,
                            ns3::Ptr<const ns3::QueueDiscItem> item)
{
    self->Dropped(link, item->GetPacket());
}

void Metrics::Dropped(LinkCounters* link, const ns3::Ptr<const ns3::Packet>& packet)
{
    if (m_draining) {
        Drained(packet);
        return;
    }
    ++link->drops;
    ++link->interval_drops;
    auto* flow = Tagged(packet);
    if (!flow) {
        ++m_control_dropped;
        return;
    }
    ++flow->dropped;
    ++flow->interval.drops;
}

void Metrics::Drained(ns3::Ptr<const ns3::Packet> packet)
{
    if (auto* flow = Tagged(packet))
        ++flow->in_queues;
}

void Metrics::CheckConservation(const Scenario& scenario) const
{
    for (std::size_t i = 0; i < m_flows.size(); ++i) {
        const auto& flow = m_flows[i];
        const auto in_flight = flow.on_wire + flow.in_queues;
        const auto missing = static_cast<std::int64_t>(flow.sent) -
                             static_cast<std::int64_t>(flow.received + flow.dropped) - in_flight;
        if (flow.on_wire < 0 || missing != 0)
            throw InvariantError("flow " + scenario.flows[i].id +
                                 ": packets are not conserved: " + std::to_string(flow.sent) +
                                 " sent, " + std::to_string(flow.received) + " received, " +
                                 std::to_string(flow.dropped) + " dropped, " +
                                 std::to_string(in_flight) + " in flight");
    }
}

} // namespace replicate
