/// Counts of every flow and link direction, kept while the simulation runs.
///
/// Everything here is on the per-packet path: plain array increments, no look-up by name, no
/// allocation but a histogram page at a delay that was never seen before.
#pragma once

#include "scenario.hpp"

#include <ns3/ipv4-header.h>
#include <ns3/packet.h>
#include <ns3/queue-item.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace replicate
{

/// Histogram of delays in bins of 10 microseconds, in pages that exist only where delays fell.
class DelayHistogram
{
public:
    void Add(std::int64_t delay_ns);
    /// Upper edge of the bin that holds the quantile, but never above the largest delay seen.
    double QuantileSeconds(double quantile) const;

private:
    static constexpr std::int64_t kBinNs = 10'000;
    static constexpr std::int64_t kPageBins = 1024;
    using Page = std::array<std::uint32_t, kPageBins>;

    std::map<std::int64_t, std::unique_ptr<Page>> m_pages;
    std::int64_t m_last_index = -1;
    Page* m_last = nullptr;
    std::int64_t m_largest_ns = 0;
    std::uint64_t m_count = 0;
};

/// What a flow did in one sampling interval.
struct FlowInterval {
    std::uint64_t ip_bytes = 0;
    std::uint64_t received = 0;
    std::int64_t delay_ns = 0;
    std::uint64_t drops = 0;
    std::uint64_t retransmissions = 0;
    std::uint64_t application_bytes = 0; ///< in order
};

/// Totals of one flow; packets are data packets: with TCP payload, or CBR.
struct FlowCounters {
    std::int64_t stop_ns = 0; ///< of a transfer that is complete: the arrival of its last byte
    std::uint64_t stop_after_bytes = 0; ///< 0: without end
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::uint64_t dropped = 0;
    std::uint64_t retransmissions = 0;
    std::uint64_t timeouts = 0;
    std::uint64_t ip_bytes = 0;          ///< arrived until stop_ns
    std::uint64_t application_bytes = 0; ///< in order, until stop_ns
    std::int64_t delay_ns = 0;           ///< sum over received packets
    std::int64_t rtt_ns = 0;             ///< sum over samples
    std::uint64_t rtt_samples = 0;
    std::int64_t last_rtt_ns = 0;
    std::int64_t on_wire = 0;   ///< being transmitted or propagating
    std::int64_t in_queues = 0; ///< found in queues when the run was over
    DelayHistogram delays;
    FlowInterval interval;

    bool Complete() const { return stop_after_bytes && application_bytes == stop_after_bytes; }
};

/// Totals of one link direction, all packets.
struct LinkCounters {
    std::uint64_t packets = 0; ///< whose transmission began
    std::uint64_t drops = 0;
    std::uint64_t interval_drops = 0;
    std::uint64_t interval_ip_bytes = 0;
};

class Metrics
{
public:
    explicit Metrics(const Scenario& scenario);

    FlowCounters& Flow(std::uint32_t flow) { return m_flows[flow]; }
    /// Counters of a link direction: 0 is a to b, 1 is b to a.
    LinkCounters& Link(std::uint32_t link, int direction) { return m_links[2 * link + direction]; }
    std::uint64_t ControlDropped() const { return m_control_dropped; }

    /// Tag and count a data packet that a source hands to IP now.
    void Sent(std::uint32_t flow, ns3::Ptr<const ns3::Packet> packet);
    void Delivered(const ns3::Ipv4Header& header, ns3::Ptr<const ns3::Packet> packet,
                   std::uint32_t interface);
    void ApplicationReceived(std::uint32_t flow, std::uint64_t bytes);
    void RttSample(std::uint32_t flow, std::int64_t rtt_ns);

    static void TransmissionBegan(Metrics* self, LinkCounters* link,
                                  ns3::Ptr<const ns3::Packet> packet);
    static void TransmissionEnded(LinkCounters* link, ns3::Ptr<const ns3::Packet> packet);
    static void Arrived(Metrics* self, ns3::Ptr<const ns3::Packet> packet);
    static void LostOnLink(Metrics* self, LinkCounters* link, ns3::Ptr<const ns3::Packet> packet);
    static void DroppedByDevice(Metrics* self, LinkCounters* link,
                                ns3::Ptr<const ns3::Packet> packet);
    static void DroppedByDisc(Metrics* self, LinkCounters* link,
                              ns3::Ptr<const ns3::QueueDiscItem> item);

    /// The run is over: packets that now leave queues are counted as still in flight.
    void BeginDrain() { m_draining = true; }
    void Drained(ns3::Ptr<const ns3::Packet> packet);

    /// Throws InvariantError unless every packet sent was received, dropped or found in flight.
    void CheckConservation(const Scenario& scenario) const;

private:
    FlowCounters* Tagged(const ns3::Ptr<const ns3::Packet>& packet);
    void Dropped(LinkCounters* link, const ns3::Ptr<const ns3::Packet>& packet);

    std::vector<FlowCounters> m_flows;
    std::vector<LinkCounters> m_links;
    std::uint64_t m_control_dropped = 0;
    bool m_draining = false;
};

} // namespace replicate
