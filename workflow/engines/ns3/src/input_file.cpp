#include "input_file.hpp"

#include <algorithm>
#include <fstream>

namespace replicate
{
namespace
{

constexpr const char* kVersion = "2";
constexpr const char* kEngine = "ns3";
constexpr std::size_t kHashDigits = 64;

/// The lines of an input file, one after the other; knows where it is.
class Lines
{
public:
    explicit Lines(const std::string& path) : m_file(path, std::ios::binary) {}

    bool Opened() const { return m_file.is_open(); }
    std::size_t Number() const { return m_number; }
    bool AtEnd() { return m_file.peek() == std::ifstream::traits_type::eof(); }

    Statement Next()
    {
        ++m_number;
        std::string line;
        if (!std::getline(m_file, line))
            throw InputError("the input file ends too early");
        return Statement(line);
    }

    Statement Next(const char* word)
    {
        auto statement = Next();
        if (statement.Word() != word)
            throw InputError("'" + statement.Word() + "' where " + word + " belongs");
        return statement;
    }

private:
    std::ifstream m_file;
    std::size_t m_number = 0;
};

/// Whole bits a second.
std::uint64_t Rate(Statement& line, const std::string& name)
{
    return static_cast<std::uint64_t>(std::llround(line.Value<double>(name)));
}

/// The settings of a discipline stay in the statement: see queues.cpp.
QueueSpec ReadQueue(Statement line)
{
    QueueSpec queue;
    // In the order of QueueKind.
    queue.kind = static_cast<QueueKind>(
        line.Choice("kind", {"droptail", "pfifo", "red", "codel", "fq_codel", "pie"}));
    queue.limit_packets = line.Optional<std::uint32_t>("limit_packets");
    if (queue.kind == QueueKind::DropTail) {
        queue.limit_bytes = line.Optional<std::uint32_t>("limit_bytes");
        line.End();
    } else {
        queue.device_queue_packets = line.Value<std::uint32_t>("device_queue_packets");
    }
    queue.settings = line;
    return queue;
}

LossSpec ReadLoss(Statement line)
{
    LossSpec loss;
    loss.random = line.Choice("kind", {"listed", "random"}) == 1;
    if (loss.random) {
        loss.probability = line.Value<double>("probability");
    } else {
        loss.flow = line.Value<std::uint32_t>("flow");
        loss.data_packets = line.List("data_packets");
    }
    line.End();
    return loss;
}

ShaperSpec ReadShaper(Statement line)
{
    ShaperSpec shaper;
    line.Choice("kind", {"token_bucket"});
    shaper.burst_bytes = line.Value<std::uint32_t>("burst_bytes");
    shaper.line_rate_bps = Rate(line, "line_rate_bps");
    line.End();
    return shaper;
}

LinkChange ReadChange(Statement line)
{
    LinkChange change;
    change.at_ns = line.Value<std::int64_t>("at_ns");
    if (const auto rate_bps = line.Optional<double>("rate_bps"))
        change.rate_bps = static_cast<std::uint64_t>(std::llround(*rate_bps));
    change.delay_ns = line.Optional<std::int64_t>("delay_ns");
    change.loss[0] = line.Optional<double>("loss_ab");
    change.loss[1] = line.Optional<double>("loss_ba");
    line.End();
    return change;
}

std::vector<std::uint64_t> ReadOpportunities(Statement line)
{
    const auto times_ms = line.List("at_ms");
    line.End();
    if (times_ms.empty() || times_ms.back() == 0 ||
        !std::is_sorted(times_ms.begin(), times_ms.end()))
        throw InputError(line.Word() + ".at_ms: not a series");
    return times_ms;
}

LinkSpec ReadLink(Statement& line, const Scenario& scenario)
{
    LinkSpec link;
    link.id = line.Text("id");
    link.ends[0] = line.Place("a", scenario.nodes.size());
    link.ends[1] = line.Place("b", scenario.nodes.size());
    link.rate_bps = Rate(line, "rate_bps");
    link.delay_ns = line.Value<std::int64_t>("delay_ns");
    link.jitter_ns = line.Value<std::int64_t>("jitter_ns");
    link.frame_bytes = line.Value<std::uint32_t>("frame_bytes");
    line.End();
    return link;
}

/// Read a line that belongs to a link; false for any other line.
bool ReadPart(const Statement& line, LinkSpec& link)
{
    if (line.Word() == "change") {
        link.changes.push_back(ReadChange(line));
        return true;
    }
    for (const int way : {0, 1}) {
        const std::string suffix = way == 0 ? "_ab" : "_ba";
        if (line.Word() == "queue" + suffix)
            link.queue[way] = ReadQueue(line);
        else if (line.Word() == "loss" + suffix)
            link.loss[way] = ReadLoss(line);
        else if (line.Word() == "shaper" + suffix)
            link.shaper[way] = ReadShaper(line);
        else if (line.Word() == "opportunities" + suffix)
            link.opportunities_ms[way] = ReadOpportunities(line);
        else
            continue;
        return true;
    }
    return false;
}

void ReadTcp(Statement& line, FlowSpec& flow)
{
    flow.connect_ns = line.Value<std::int64_t>("connect_ns");
    flow.congestion_control = line.Text("congestion_control");
    // In the order of Recovery.
    flow.recovery = static_cast<Recovery>(line.Choice("recovery", {"classic", "prr", "ns3_prr"}));
    flow.sack = line.Flag("sack");
    flow.timestamps = line.Flag("timestamps");
    flow.segment_bytes = line.Value<std::uint32_t>("segment_bytes");
    flow.initial_window_segments = line.Value<std::uint32_t>("initial_window_segments");
    flow.initial_ssthresh_bytes = line.Optional<std::uint32_t>("initial_ssthresh_bytes");
    flow.maximum_window_bytes = line.Optional<std::uint32_t>("maximum_window_bytes");
    flow.delayed_ack_segments = line.Value<std::uint32_t>("delayed_ack_segments");
    flow.delayed_ack_timeout_ns = line.Value<std::int64_t>("delayed_ack_timeout_ns");
    flow.minimum_rto_ns = line.Value<std::int64_t>("minimum_rto_ns");
    flow.initial_rto_ns = line.Value<std::int64_t>("initial_rto_ns");
    flow.clock_granularity_ns = line.Value<std::int64_t>("clock_granularity_ns");
    flow.limited_transmit = line.Flag("limited_transmit");
    flow.vegas_alpha_packets = line.Value<std::uint32_t>("vegas_alpha_packets");
    flow.vegas_beta_packets = line.Value<std::uint32_t>("vegas_beta_packets");
    flow.vegas_gamma_packets = line.Value<std::uint32_t>("vegas_gamma_packets");
    flow.cubic_tcp_friendliness = line.Flag("cubic_tcp_friendliness");
    flow.cubic_fast_convergence = line.Flag("cubic_fast_convergence");
    flow.cubic_beta = line.Value<double>("cubic_beta");
    flow.cubic_hystart = line.Flag("cubic_hystart");
    flow.stop_after_bytes = line.Optional<std::uint64_t>("stop_after_bytes");
    flow.ecn = line.Flag("ecn");
    flow.socket_samples = line.Flag("socket_samples");
}

FlowSpec ReadFlow(Statement& line, const Scenario& scenario)
{
    FlowSpec flow;
    flow.id = line.Text("id");
    flow.tcp = line.Choice("kind", {"cbr", "tcp"}) == 1;
    flow.source = line.Place("source", scenario.nodes.size());
    flow.destination = line.Place("destination", scenario.nodes.size());
    flow.start_ns = line.Value<std::int64_t>("start_ns");
    flow.stop_ns = line.Value<std::int64_t>("stop_ns");
    if (flow.tcp) {
        ReadTcp(line, flow);
    } else {
        flow.rate_bps = line.Value<double>("rate_bps");
        flow.packet_bytes = line.Value<std::uint32_t>("packet_bytes");
    }
    line.End();
    return flow;
}

DirectionSpec ReadDirection(Statement& line, const Scenario& scenario)
{
    DirectionSpec direction;
    direction.link = line.Place("link", scenario.links.size());
    direction.direction = static_cast<int>(line.Choice("direction", {"ab", "ba"}));
    return direction;
}

/// The scenario and the engine of the input file.
void ReadHead(Lines& lines, Scenario& scenario)
{
    auto head = lines.Next("input");
    if (const auto version = head.Text("version"); version != kVersion)
        throw InputError("an input file of version " + version + ", not " + kVersion);
    if (const auto engine = head.Text("engine"); engine != kEngine)
        throw InputError("an input file for engine " + engine + ", not " + kEngine);
    scenario.sha256 = head.Text("scenario");
    if (scenario.sha256.size() != kHashDigits ||
        scenario.sha256.find_first_not_of("0123456789abcdef") != std::string::npos)
        throw InputError("input.scenario: not a hash");
    head.End();
    auto run = lines.Next("run");
    scenario.duration_ns = run.Value<std::int64_t>("duration_ns");
    scenario.sampling_interval_ns = run.Value<std::int64_t>("sampling_interval_ns");
    scenario.seed = run.Value<std::uint32_t>("seed");
    run.End();
}

Scenario Read(Lines& lines)
{
    Scenario scenario;
    ReadHead(lines, scenario);
    auto line = lines.Next();
    for (; line.Word() == "node"; line = lines.Next()) {
        scenario.nodes.push_back(line.Text("id"));
        line.End();
    }
    while (line.Word() == "link") {
        auto& link = scenario.links.emplace_back(ReadLink(line, scenario));
        for (line = lines.Next(); ReadPart(line, link);)
            line = lines.Next();
        for (const auto& queue : link.queue)
            if (!queue.limit_packets && !queue.limit_bytes)
                throw InputError("link " + link.id + ": a queue without a limit");
    }
    for (; line.Word() == "flow"; line = lines.Next())
        scenario.flows.push_back(ReadFlow(line, scenario));
    for (; line.Word() == "monitor"; line = lines.Next()) {
        scenario.monitors.push_back(ReadDirection(line, scenario));
        line.End();
    }
    for (; line.Word() == "route"; line = lines.Next()) {
        const auto by = ReadDirection(line, scenario);
        scenario.routes.push_back({by, line.Place("to", scenario.nodes.size())});
        line.End();
    }
    if (line.Word() != "end")
        throw InputError("'" + line.Word() + "' does not belong here");
    line.End();
    if (!lines.AtEnd())
        throw InputError("something follows the end");
    for (const auto& link : scenario.links)
        for (const auto& loss : link.loss)
            if (loss && !loss->random && loss->flow >= scenario.flows.size())
                throw InputError("a loss of a flow that is not there");
    return scenario;
}

} // namespace

Scenario ReadInputFile(const std::string& path)
{
    Lines lines(path);
    if (!lines.Opened())
        throw InputError(path + ": cannot be read: give the path of an input file");
    try {
        return Read(lines);
    } catch (const InputError& error) {
        throw InputError(path + ": line " + std::to_string(lines.Number()) + ": " + error.what() +
                         ": give an input file that replicate made for " + kEngine);
    }
}

} // namespace replicate
