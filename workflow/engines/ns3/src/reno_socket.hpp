/// Classic TCP Reno (RFC 2581, section 3.2; Fall and Floyd 1996, section 3).
#pragma once

#include "flow_socket.hpp"

#include <ns3/tcp-congestion-ops.h>

namespace replicate
{

/// Window of Tahoe and Reno: NewReno's growth, and half of the smaller of cwnd and what is
/// outstanding. After a recovery of Reno more may be outstanding than cwnd: BSD and ns-2 halve the
/// window then, so that each further loss halves it again.
class ClassicWindow : public ns3::TcpNewReno
{
public:
    static ns3::TypeId GetTypeId();
    std::uint32_t GetSsThresh(ns3::Ptr<const ns3::TcpSocketState> state,
                              std::uint32_t flight) override;
    ns3::Ptr<ns3::TcpCongestionOps> Fork() override;
    std::string GetName() const override { return "ClassicWindow"; }
};

/// Fast recovery with an inflated window, left at the first new acknowledgement, whether or not
/// it covers the whole window. Losses after the first in a window therefore need a fast
/// retransmit of their own, each halving the window again, or a timeout. cwnd is really inflated
/// while recovery lasts, and is traced so.
class RenoSocket : public FlowSocket
{
public:
    static ns3::TypeId GetTypeId();

protected:
    void ProcessAck(const ns3::SequenceNumber32& ack, bool scoreboard_updated,
                    std::uint32_t delivered, const ns3::SequenceNumber32& head,
                    bool has_data) override;
    bool GrowsOnLastAckOfLoss() const override { return true; }
    std::uint32_t AvailableWindow() const override;

private:
    bool InRecovery() const;
    void EnterFastRecovery();
    void LeaveFastRecovery(ns3::SequenceNumber32 ack);
};

} // namespace replicate
