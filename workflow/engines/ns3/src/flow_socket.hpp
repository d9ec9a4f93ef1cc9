/// TCP socket that is a bulk source and counts itself; the base of Tahoe and Reno.
#pragma once

#include "metrics.hpp"
#include "prr.hpp"
#include "release.hpp"
#include "scenario.hpp"
#include "trace.hpp"
#include "westwood.hpp"

#include <ns3/rtt-estimator.h>

#include <optional>

namespace replicate
{

/// RFC 6298 estimator that also records every sample it is given.
class RecordingRtt : public ns3::RttMeanDeviation
{
public:
    static ns3::TypeId GetTypeId();
    void Record(Metrics* metrics, std::uint32_t flow);
    void Measurement(ns3::Time sample) override;

private:
    Metrics* m_metrics = nullptr;
    std::uint32_t m_flow = 0;
};

class FlowSocket : public SocketBase
{
public:
    static ns3::TypeId GetTypeId();

    /// Set every default of ns-3 from the scenario; both ends of a flow are configured alike.
    void Configure(const FlowSpec& spec);

    /// Make this end the sender, whose data are counted under this flow.
    void BecomeSender(Metrics* metrics, Trace* trace, std::uint32_t flow);

    /// From now on there are data: those of the scenario's transfer, or without end.
    void Begin();

    /// Fall silent: no new data, no retransmissions, arriving acknowledgements are ignored.
    void Stop();

    /// Take what has arrived in order, as a receiving application does; returns the bytes.
    std::uint64_t TakeReceived();

    std::uint32_t Cwnd() const { return m_tcb->m_cWnd; }
    /// Slow start threshold; none while it is infinite.
    std::optional<std::uint32_t> Ssthresh() const;
    bool Connected() const { return m_connected; }

protected:
    ns3::Ptr<ns3::TcpSocketBase> Fork() override;
    void DoForwardUp(ns3::Ptr<ns3::Packet> packet, const ns3::Address& from,
                     const ns3::Address& to) override;
    void ReceivedAck(ns3::Ptr<ns3::Packet> packet, const ns3::TcpHeader& header) override;
    void ReTxTimeout() override;
    std::uint32_t AvailableWindow() const override;

    void ProcessAck(const ns3::SequenceNumber32& ack, bool scoreboard_updated,
                    std::uint32_t delivered, const ns3::SequenceNumber32& head,
                    bool has_data) override;

    /// Duplicate acknowledgement (RFC 5681, section 2) of a flow without SACK.
    bool IsDuplicate(ns3::SequenceNumber32 ack, ns3::SequenceNumber32 head, bool has_data) const;
    /// This duplicate is the third, and not an echo of segments sent again after a loss.
    bool IsFastRetransmitDue() const;
    /// Whether the acknowledgement that ends loss recovery by slow start also opens the window.
    virtual bool GrowsOnLastAckOfLoss() const { return false; }
    /// Ignore duplicates until more than what is outstanding now is acknowledged.
    void IgnoreEchoes() { m_ignoring_echoes = true; }

private:
    void SegmentSent(ns3::Ptr<const ns3::Packet> packet, const ns3::TcpHeader& header,
                     ns3::Ptr<const ns3::TcpSocketBase> socket);
    void Refill();
    void ReduceProportionally();
    void TraceEvent(const char* event, ns3::SequenceNumber32 sequence) const;

    Metrics* m_metrics = nullptr;
    Trace* m_trace = nullptr;
    std::uint32_t m_flow = 0;
    std::uint64_t m_unsupplied = 0; ///< bytes that the application has not handed over yet
    std::uint32_t m_window_cap = 0; ///< 0: none
    bool m_begun = false;
    bool m_stopped = false;
    bool m_ignoring_echoes = false;
    std::optional<Prr> m_prr;      ///< of flows that recover by it
    ns3::Ptr<Westwood> m_westwood; ///< of flows with this congestion control
};

} // namespace replicate
