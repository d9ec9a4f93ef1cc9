#include "scenario.hpp"

#include "errors.hpp"
#include "features.hpp"
#include "fields.hpp"
#include "routing.hpp"
#include "sha256.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>

namespace replicate
{
namespace
{

using Index = std::map<std::string, std::uint32_t>;

std::uint32_t Resolve(const Index& index, const std::string& id, const std::string& field,
                      const char* what)
{
    const auto found = index.find(id);
    if (found == index.end())
        Refuse(field, "unknown " + std::string(what) + " '" + id + "'",
               std::string("give the id of a ") + what + " of this scenario");
    return found->second;
}

void Register(Index& index, const std::string& id, const std::string& field)
{
    if (!index.emplace(id, static_cast<std::uint32_t>(index.size())).second)
        Refuse(field, "duplicate id '" + id + "'", "give every id once");
}

void ReadDropTail(Fields& fields, QueueSpec& queue)
{
    queue.limit_packets = fields.OptionalCount("limit_packets");
    queue.limit_bytes = fields.OptionalCount("limit_bytes");
    if (queue.limit_packets.has_value() == queue.limit_bytes.has_value())
        Refuse(fields.Path("limit_packets"), queue.limit_packets ? "and limit_bytes" : "missing",
               "give exactly one of limit_packets and limit_bytes");
}

void ReadRed(Fields& fields, QueueSpec& queue)
{
    queue.minimum_threshold_packets = fields.Number("minimum_threshold_packets", 0, 1e9);
    queue.maximum_threshold_packets = fields.Number("maximum_threshold_packets", 0, 1e9, true);
    queue.queue_weight = fields.Number("queue_weight", 0, 1, true);
    queue.maximum_probability = fields.Number("maximum_probability", 0, 1, true);
    queue.mean_packet_bytes = fields.Count("mean_packet_bytes");
    queue.gentle = fields.Boolean("gentle", true);
    queue.byte_mode = fields.Boolean("byte_mode", false);
    queue.wait = fields.Boolean("wait", true);
    if (queue.minimum_threshold_packets >= queue.maximum_threshold_packets)
        Refuse(fields.Path("minimum_threshold_packets"), "not below maximum_threshold_packets",
               "give a minimum below the maximum");
}

/// The parts that CoDel (RFC 8289), FQ-CoDel (RFC 8290) and PIE (RFC 8033) add to a limit.
void ReadDelayBased(Fields& fields, QueueSpec& queue)
{
    queue.target_ns = fields.Nanoseconds("target_s", true);
    if (queue.kind == QueueKind::Pie) {
        queue.update_interval_ns = fields.Nanoseconds("update_interval_s", true);
        queue.mean_packet_bytes = fields.Count("mean_packet_bytes", 1000);
        return;
    }
    queue.interval_ns = fields.Nanoseconds("interval_s", true);
    if (queue.kind == QueueKind::FqCoDel) {
        queue.buckets = fields.Count("buckets", 1024);
        queue.quantum_bytes = fields.Count("quantum_bytes", 1514);
    }
}

QueueSpec ReadQueue(const json::Value& value, const std::string& path)
{
    Fields fields(value, path);
    QueueSpec queue;
    const std::string kind =
        fields.Choice("kind", {"droptail", "pfifo", "red", "codel", "fq_codel", "pie"}, "droptail");
    if (kind == "droptail") {
        ReadDropTail(fields, queue);
        fields.Finish();
        return queue;
    }
    static const std::map<std::string, QueueKind> kinds = {{"pfifo", QueueKind::Pfifo},
                                                           {"red", QueueKind::Red},
                                                           {"codel", QueueKind::CoDel},
                                                           {"fq_codel", QueueKind::FqCoDel},
                                                           {"pie", QueueKind::Pie}};
    queue.kind = kinds.at(kind);
    queue.limit_packets = fields.Count("limit_packets");
    queue.device_queue_packets = fields.Count("device_queue_packets", 1);
    if (queue.kind == QueueKind::Red)
        ReadRed(fields, queue);
    else if (queue.kind != QueueKind::Pfifo)
        ReadDelayBased(fields, queue);
    fields.Finish();
    return queue;
}

LossSpec ReadLoss(const json::Value& value, const std::string& path, const Index& flows)
{
    Fields fields(value, path);
    LossSpec loss;
    loss.random = fields.Choice("kind", {"random", "listed"}, "random") == "random";
    if (loss.random) {
        loss.probability = fields.Number("probability", 0, 1);
    } else {
        loss.flow = Resolve(flows, fields.Identifier("flow"), fields.Path("flow"), "flow");
        for (const auto& item : fields.List("data_packets", 1)) {
            if (item.kind != json::Kind::Number || item.number != std::floor(item.number) ||
                item.number < 1 || item.number > 1e9)
                Refuse(fields.Path("data_packets"), json::Describe(item),
                       "give integers from 1 to 1000000000");
            loss.data_packets.push_back(static_cast<std::uint64_t>(item.number));
        }
        std::sort(loss.data_packets.begin(), loss.data_packets.end());
    }
    fields.Finish();
    return loss;
}

LinkSpec ReadLink(const json::Value& value, const std::string& path, const Index& nodes,
                  const Index& flows)
{
    Fields fields(value, path);
    LinkSpec link;
    link.id = fields.Identifier("id");
    link.ends[0] = Resolve(nodes, fields.Identifier("a"), fields.Path("a"), "node");
    link.ends[1] = Resolve(nodes, fields.Identifier("b"), fields.Path("b"), "node");
    if (link.ends[0] == link.ends[1])
        Refuse(fields.Path("b"), "the same node as a", "join two different nodes");
    const double rate = fields.Number("rate_bps", 0, 1e12, true);
    link.rate_bps = static_cast<std::uint64_t>(std::llround(rate));
    if (link.rate_bps == 0)
        Refuse(fields.Path("rate_bps"), "below 1", "give at least 1 bit per second");
    link.delay_ns = fields.Nanoseconds("delay_s", false);
    const char* queues[] = {"queue_ab", "queue_ba"};
    const char* losses[] = {"loss_ab", "loss_ba"};
    for (int i = 0; i < 2; ++i) {
        link.queue[i] = ReadQueue(*fields.Object(queues[i]), fields.Path(queues[i]));
        if (const auto* loss = fields.Object(losses[i], true))
            link.loss[i] = ReadLoss(*loss, fields.Path(losses[i]), flows);
    }
    fields.Finish();
    return link;
}

void ReadTcp(Fields& fields, FlowSpec& flow)
{
    flow.congestion_control = fields.Text("congestion_control");
    flow.prr = fields.Choice("recovery", {"classic", "prr"}, "classic") == "prr";
    flow.sack = fields.Boolean("sack", false);
    flow.timestamps = fields.Boolean("timestamps", false);
    flow.segment_bytes = static_cast<std::uint32_t>(fields.Integer("segment_bytes", 64, 65000));
    flow.initial_window_segments =
        static_cast<std::uint32_t>(fields.Integer("initial_window_segments", 1, 1000));
    flow.initial_ssthresh_bytes = fields.OptionalCount("initial_ssthresh_bytes");
    flow.maximum_window_bytes = fields.OptionalCount("maximum_window_bytes");
    flow.delayed_ack_segments =
        static_cast<std::uint32_t>(fields.Integer("delayed_ack_segments", 1, 10));
    flow.delayed_ack_timeout_ns = fields.Nanoseconds("delayed_ack_timeout_s", true, 0.2);
    flow.minimum_rto_ns = fields.Nanoseconds("minimum_rto_s", true);
    flow.initial_rto_ns = fields.Nanoseconds("initial_rto_s", true);
    flow.clock_granularity_ns = fields.Nanoseconds("clock_granularity_s", true, 0.001);
    flow.limited_transmit = fields.Boolean("limited_transmit", false);
    const auto packets = [&](const char* key, std::int64_t fallback) {
        return static_cast<std::uint32_t>(fields.Integer(key, 0, 1000, fallback));
    };
    flow.vegas_alpha_packets = packets("vegas_alpha_packets", 2);
    flow.vegas_beta_packets = packets("vegas_beta_packets", 4);
    flow.vegas_gamma_packets = packets("vegas_gamma_packets", 1);
    flow.cubic_tcp_friendliness = fields.Boolean("cubic_tcp_friendliness", true);
    flow.cubic_fast_convergence = fields.Boolean("cubic_fast_convergence", true);
    if (flow.maximum_window_bytes && *flow.maximum_window_bytes < flow.segment_bytes)
        Refuse(fields.Path("maximum_window_bytes"), std::to_string(*flow.maximum_window_bytes),
               "give at least segment_bytes, else nothing could ever be sent");
    CheckFeatures(flow, fields.Path(""));
}

FlowSpec ReadFlow(const json::Value& value, const std::string& path, const Index& nodes,
                  std::int64_t duration_ns)
{
    Fields fields(value, path);
    FlowSpec flow;
    flow.id = fields.Identifier("id");
    flow.tcp = fields.Choice("kind", {"tcp", "cbr"}, "tcp") == "tcp";
    flow.source = Resolve(nodes, fields.Identifier("source"), fields.Path("source"), "node");
    flow.destination =
        Resolve(nodes, fields.Identifier("destination"), fields.Path("destination"), "node");
    if (flow.source == flow.destination)
        Refuse(fields.Path("destination"), "the same node as source", "give two different nodes");
    flow.start_ns = fields.Nanoseconds("start_s", false);
    flow.stop_ns = fields.Nanoseconds("stop_s", true);
    if (flow.start_ns >= std::min(flow.stop_ns, duration_ns))
        Refuse(fields.Path("start_s"), "not before stop_s and duration_s",
               "start the flow before it stops and before the run ends");
    flow.stop_ns = std::min(flow.stop_ns, duration_ns);
    if (flow.tcp) {
        ReadTcp(fields, flow);
    } else {
        flow.rate_bps = fields.Number("rate_bps", 0, 1e12, true);
        flow.packet_bytes = static_cast<std::uint32_t>(fields.Integer("packet_bytes", 64, 65000));
    }
    fields.Finish();
    return flow;
}

MonitorSpec ReadMonitor(const json::Value& value, const std::string& path, const Index& links)
{
    Fields fields(value, path);
    MonitorSpec monitor;
    monitor.link = Resolve(links, fields.Identifier("link"), fields.Path("link"), "link");
    monitor.direction = fields.Choice("direction", {"ab", "ba"}, "ab") == "ab" ? 0 : 1;
    fields.Finish();
    return monitor;
}

std::string At(const char* list, std::size_t i)
{
    return std::string(list) + "[" + std::to_string(i) + "]";
}

/// Ids come first, since links name flows (listed losses) and flows name nodes.
Index ReadIds(const std::vector<json::Value>& items, const char* list)
{
    Index index;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (items[i].kind == json::Kind::String) {
            Register(index, CheckIdentifier(items[i].text, At(list, i)), At(list, i));
            continue;
        }
        Fields fields(items[i], At(list, i));
        Register(index, fields.Identifier("id"), At(list, i) + ".id");
    }
    return index;
}

void CheckSampling(const Scenario& scenario)
{
    if (scenario.sampling_interval_ns > scenario.duration_ns)
        Refuse("sampling_interval_s", "longer than duration_s", "sample at least once");
    const double rows = static_cast<double>(scenario.duration_ns) /
                        static_cast<double>(scenario.sampling_interval_ns) *
                        static_cast<double>(scenario.flows.size() + scenario.monitors.size());
    if (rows > 1e9)
        Refuse("sampling_interval_s", "more than 1e9 rows in series.csv", "sample less often");
}

Scenario ReadDocument(const json::Value& document)
{
    Fields fields(document, "");
    fields.Integer("schema_version", 1, 1, 1);
    Scenario scenario;
    scenario.sha256 = Sha256(json::Canonical(document));
    scenario.duration_ns = fields.Nanoseconds("duration_s", true);
    scenario.sampling_interval_ns = fields.Nanoseconds("sampling_interval_s", true);
    scenario.seed = static_cast<std::uint32_t>(fields.Integer("seed", 1, 2147483647));

    const auto& nodes = fields.List("nodes", 2);
    const auto& links = fields.List("links", 1);
    const auto& flows = fields.List("flows", 1);
    const auto& monitors = fields.List("monitors", 0, true);
    fields.Finish();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i].kind != json::Kind::String)
            Refuse(At("nodes", i), json::Describe(nodes[i]), "give a string");
        scenario.nodes.push_back(nodes[i].text);
    }
    if (nodes.size() > 20000)
        Refuse("nodes", std::to_string(nodes.size()) + " items", "give at most 20000");
    const Index node_ids = ReadIds(nodes, "nodes");
    const Index flow_ids = ReadIds(flows, "flows");
    const Index link_ids = ReadIds(links, "links");
    for (std::size_t i = 0; i < links.size(); ++i)
        scenario.links.push_back(ReadLink(links[i], At("links", i), node_ids, flow_ids));
    for (std::size_t i = 0; i < flows.size(); ++i)
        scenario.flows.push_back(
            ReadFlow(flows[i], At("flows", i), node_ids, scenario.duration_ns));
    Index watched;
    for (std::size_t i = 0; i < monitors.size(); ++i) {
        const auto monitor = ReadMonitor(monitors[i], At("monitors", i), link_ids);
        Register(watched, scenario.links[monitor.link].id + (monitor.direction ? ":ba" : ":ab"),
                 At("monitors", i));
        scenario.monitors.push_back(monitor);
    }
    CheckSampling(scenario);
    return scenario;
}

} // namespace

Scenario ReadScenario(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file.is_open() || file.bad())
        throw InputError(path + ": cannot be read: give the path of a scenario file");
    try {
        const Scenario scenario = ReadDocument(json::Parse(text));
        CheckPaths(scenario);
        return scenario;
    } catch (const InputError& error) {
        throw InputError(path + ": " + error.what());
    }
}

} // namespace replicate
