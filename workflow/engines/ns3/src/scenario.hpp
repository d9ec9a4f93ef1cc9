/// One run as its input file states it: SI units, ids resolved to indices, all checks passed.
#pragma once

#include "statement.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace replicate
{

enum class QueueKind { DropTail, Pfifo, Red, CoDel, FqCoDel, Pie };

/// Egress queue of one link direction; its discipline takes its settings by their names.
struct QueueSpec {
    QueueKind kind = QueueKind::DropTail;
    std::optional<std::uint32_t> limit_packets;
    std::optional<std::uint32_t> limit_bytes;
    std::uint32_t device_queue_packets = 1;
    Statement settings;
};

/// Losses on one link direction: random with a probability, or listed packets of one flow.
struct LossSpec {
    bool random = true;
    double probability = 0;
    std::uint32_t flow = 0;
    std::vector<std::uint64_t> data_packets; ///< sorted; 1 is the first to cross
};

/// A token bucket at the link's rate, as of Linux's HTB; what it lets go passes at the line's rate.
struct ShaperSpec {
    std::uint32_t burst_bytes = 0;
    std::uint64_t line_rate_bps = 0;
};

/// New values of a link from a time on; none: as before.
struct LinkChange {
    std::int64_t at_ns = 0;
    std::optional<std::uint64_t> rate_bps;
    std::optional<std::int64_t> delay_ns;
    std::optional<double> loss[2]; ///< probabilities of random loss
};

/// Duplex link; index 0 of the pairs is the direction a to b, index 1 is b to a.
struct LinkSpec {
    std::string id;
    std::uint32_t ends[2] = {0, 0};
    std::uint64_t rate_bps = 0;
    std::int64_t delay_ns = 0;
    std::int64_t jitter_ns = 0;
    QueueSpec queue[2];
    std::uint32_t frame_bytes = 0; ///< beyond IP; 0 leaves the framing to the device
    std::optional<LossSpec> loss[2];
    std::optional<ShaperSpec> shaper[2];
    std::vector<std::uint64_t> opportunities_ms[2]; ///< none: it sends at its rate
    std::vector<LinkChange> changes;                ///< in the order of their times
};

/// How a sender recovers from losses; `Ns3Prr` is ns-3's own PRR, `Prr` that of RFC 6937.
enum class Recovery { Classic, Prr, Ns3Prr };

/// A TCP bulk transfer or a CBR stream.
struct FlowSpec {
    std::string id;
    bool tcp = true;
    std::uint32_t source = 0;
    std::uint32_t destination = 0;
    std::int64_t start_ns = 0;
    std::int64_t stop_ns = 0; ///< already the earlier of stop_s and duration_s
    // CBR
    double rate_bps = 0;
    std::uint32_t packet_bytes = 0;
    // TCP
    std::int64_t connect_ns = 0; ///< at most start_ns
    std::string congestion_control;
    Recovery recovery = Recovery::Classic;
    bool sack = false;
    bool timestamps = false;
    std::uint32_t segment_bytes = 0;
    std::uint32_t initial_window_segments = 0;
    std::optional<std::uint32_t> initial_ssthresh_bytes;
    std::optional<std::uint32_t> maximum_window_bytes;
    std::uint32_t delayed_ack_segments = 0;
    std::int64_t delayed_ack_timeout_ns = 0;
    std::int64_t minimum_rto_ns = 0;
    std::int64_t initial_rto_ns = 0;
    std::int64_t clock_granularity_ns = 0;
    bool limited_transmit = false;
    std::uint32_t vegas_alpha_packets = 0;
    std::uint32_t vegas_beta_packets = 0;
    std::uint32_t vegas_gamma_packets = 0;
    bool cubic_tcp_friendliness = true;
    bool cubic_fast_convergence = true;
    double cubic_beta = 0;
    bool cubic_hystart = true;
    std::optional<std::uint64_t> stop_after_bytes; ///< none: there are always data
    bool ecn = false;
    bool socket_samples = false; ///< samples have its goodput
};

/// One direction of a link: 0 is a to b, 1 is b to a.
struct DirectionSpec {
    std::uint32_t link = 0;
    int direction = 0;
};

/// The end that sends by this direction reaches a node by it.
struct RouteSpec {
    DirectionSpec by;
    std::uint32_t to = 0;
};

struct Scenario {
    std::string sha256; ///< of what the scenario says
    std::int64_t duration_ns = 0;
    std::int64_t sampling_interval_ns = 0;
    std::uint32_t seed = 1;
    std::vector<std::string> nodes;
    std::vector<LinkSpec> links;
    std::vector<FlowSpec> flows;
    std::vector<DirectionSpec> monitors; ///< whose queues are sampled into `series`
    std::vector<RouteSpec> routes;
};

} // namespace replicate
