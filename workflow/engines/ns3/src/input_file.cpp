#include "input_file.hpp"

#include "errors.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

namespace replicate
{
namespace
{

constexpr const char* kVersion = "1";
constexpr const char* kEngine = "ns3";
constexpr std::size_t kHashDigits = 64;

/// A line of an input file: a word, then names and values, which are taken in their fixed order.
class Statement
{
public:
    explicit Statement(const std::string& line) : m_words(line) { m_words >> m_word; }

    const std::string& Word() const { return m_word; }

    std::string Text(const std::string& name)
    {
        std::string found, value;
        m_words >> found >> value;
        if (found != name)
            throw InputError(m_word + ": '" + found + "' where " + name + " belongs");
        if (value.empty())
            throw InputError(m_word + "." + name + ": without a value");
        return value;
    }

    /// A number from 0 that the type can hold.
    template <typename Number>
    Number Value(const std::string& name)
    {
        return Parse<Number>(name, Text(name));
    }

    std::optional<std::uint32_t> Limit(const std::string& name)
    {
        const auto text = Text(name);
        return text == "none" ? std::nullopt : std::optional(Parse<std::uint32_t>(name, text));
    }

    /// The place of one word among those that there are.
    std::size_t Choice(const std::string& name, std::initializer_list<const char*> words)
    {
        const auto text = Text(name);
        const auto found = std::find(words.begin(), words.end(), text);
        if (found == words.end())
            Refuse(name, text);
        return static_cast<std::size_t>(found - words.begin());
    }

    /// Is this the next name? Keys that came later stand only where they are set.
    bool Has(const std::string& name)
    {
        if (m_words.eof())
            return false;
        const auto at = m_words.tellg();
        std::string found;
        m_words >> found;
        m_words.clear();
        m_words.seekg(at);
        return found == name;
    }

    bool Flag(const std::string& name) { return Choice(name, {"0", "1"}) == 1; }

    /// The index of something of which there are so many.
    std::uint32_t Place(const std::string& name, std::size_t size)
    {
        const auto place = Value<std::uint32_t>(name);
        if (place >= size)
            Refuse(name, std::to_string(place));
        return place;
    }

    std::vector<std::uint64_t> List(const std::string& name)
    {
        std::istringstream text(Text(name));
        std::vector<std::uint64_t> numbers;
        for (std::string item; std::getline(text, item, ',');)
            numbers.push_back(Parse<std::uint64_t>(name, item));
        return numbers;
    }

    void End()
    {
        if (std::string surplus; m_words >> surplus)
            throw InputError(m_word + ": '" + surplus + "' is too much");
    }

private:
    [[noreturn]] void Refuse(const std::string& name, const std::string& value) const
    {
        throw InputError(m_word + "." + name + ": '" + value + "' is not one");
    }

    template <typename Number>
    Number Parse(const std::string& name, const std::string& text) const
    {
        Number number{};
        const char* end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, number);
        if (error != std::errc{} || rest != end || !(number >= 0) ||
            std::isinf(static_cast<double>(number)))
            Refuse(name, text);
        return number;
    }

    std::istringstream m_words;
    std::string m_word;
};

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

/// Floyd and Jacobson 1993.
void ReadRed(Statement& line, QueueSpec& queue)
{
    queue.minimum_threshold_packets = line.Value<double>("minimum_threshold_packets");
    queue.maximum_threshold_packets = line.Value<double>("maximum_threshold_packets");
    queue.queue_weight = line.Value<double>("queue_weight");
    queue.maximum_probability = line.Value<double>("maximum_probability");
    queue.mean_packet_bytes = line.Value<std::uint32_t>("mean_packet_bytes");
    queue.gentle = line.Flag("gentle");
    queue.byte_mode = line.Flag("byte_mode");
    queue.wait = line.Flag("wait");
}

/// CoDel (RFC 8289), FQ-CoDel (RFC 8290) and PIE (RFC 8033).
void ReadDelayBased(Statement& line, QueueSpec& queue)
{
    queue.target_ns = line.Value<std::int64_t>("target_ns");
    if (queue.kind == QueueKind::Pie) {
        queue.update_interval_ns = line.Value<std::int64_t>("update_interval_ns");
        queue.mean_packet_bytes = line.Value<std::uint32_t>("mean_packet_bytes");
        return;
    }
    queue.interval_ns = line.Value<std::int64_t>("interval_ns");
    if (queue.kind == QueueKind::FqCoDel) {
        queue.buckets = line.Value<std::uint32_t>("buckets");
        queue.quantum_bytes = line.Value<std::uint32_t>("quantum_bytes");
    }
}

QueueSpec ReadQueue(Statement line)
{
    QueueSpec queue;
    // In the order of QueueKind.
    queue.kind = static_cast<QueueKind>(
        line.Choice("kind", {"droptail", "pfifo", "red", "codel", "fq_codel", "pie"}));
    queue.limit_packets = line.Limit("limit_packets");
    if (queue.kind == QueueKind::DropTail) {
        queue.limit_bytes = line.Limit("limit_bytes");
    } else if (queue.kind == QueueKind::Red) {
        ReadRed(line, queue);
    } else if (queue.kind != QueueKind::Pfifo) {
        ReadDelayBased(line, queue);
    }
    if (queue.kind != QueueKind::DropTail)
        queue.device_queue_packets = line.Value<std::uint32_t>("device_queue_packets");
    queue.ecn = line.Has("ecn") && line.Flag("ecn");
    if (!queue.limit_packets && !queue.limit_bytes)
        throw InputError("a queue without a limit");
    line.End();
    return queue;
}

std::optional<LossSpec> ReadLoss(Statement line)
{
    LossSpec loss;
    const auto kind = line.Choice("kind", {"none", "random", "listed"});
    loss.random = kind == 1;
    if (loss.random)
        loss.probability = line.Value<double>("probability");
    if (kind == 2) {
        loss.flow = line.Value<std::uint32_t>("flow");
        loss.data_packets = line.List("data_packets");
    }
    line.End();
    return kind == 0 ? std::nullopt : std::optional(loss);
}

std::optional<ShaperSpec> ReadShaper(Statement line)
{
    ShaperSpec shaper;
    const bool shaped = line.Choice("kind", {"none", "token_bucket"}) == 1;
    if (shaped) {
        shaper.burst_bytes = line.Value<std::uint32_t>("burst_bytes");
        shaper.line_rate_bps = Rate(line, "line_rate_bps");
    }
    line.End();
    return shaped ? std::optional(shaper) : std::nullopt;
}

LinkSpec ReadLink(Statement& line, Lines& lines, const Scenario& scenario)
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
    link.queue[0] = ReadQueue(lines.Next("queue_ab"));
    link.queue[1] = ReadQueue(lines.Next("queue_ba"));
    link.loss[0] = ReadLoss(lines.Next("loss_ab"));
    link.loss[1] = ReadLoss(lines.Next("loss_ba"));
    link.shaper[0] = ReadShaper(lines.Next("shaper_ab"));
    link.shaper[1] = ReadShaper(lines.Next("shaper_ba"));
    return link;
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
    flow.initial_ssthresh_bytes = line.Limit("initial_ssthresh_bytes");
    flow.maximum_window_bytes = line.Limit("maximum_window_bytes");
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
    if (line.Has("stop_after_bytes"))
        flow.stop_after_bytes = line.Value<std::uint64_t>("stop_after_bytes");
    flow.ecn = line.Has("ecn") && line.Flag("ecn");
    flow.socket_samples = line.Has("socket_samples") && line.Flag("socket_samples");
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
    auto host = lines.Next("host"); // of kernels; an input file for a simulator has the defaults
    host.Flag("segmentation_offload");
    host.Value<std::uint32_t>("timer_hz");
    host.End();
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
    for (; line.Word() == "link"; line = lines.Next())
        scenario.links.push_back(ReadLink(line, lines, scenario));
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
