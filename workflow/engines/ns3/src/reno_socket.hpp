/// Classic TCP Reno (RFC 2581, section 3.2; Fall and Floyd 1996, section 3).
#pragma once

#include "flow_socket.hpp"

namespace replicate
{

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
    std::uint32_t AvailableWindow() const override;

private:
    bool InRecovery() const;
    void EnterFastRecovery();
    void LeaveFastRecovery(ns3::SequenceNumber32 ack);
};

} // namespace replicate
