/// TCP Tahoe (Jacobson 1988; Fall and Floyd 1996, section 2): fast retransmit, no fast recovery.
#pragma once

#include "flow_socket.hpp"

namespace replicate
{

/// On the third duplicate acknowledgement: ssthresh = max(flight / 2, 2 segments), cwnd = 1
/// segment, and slow start from the lost segment on (go-back-N), as after a timeout but without
/// waiting for one and without backing the timer off. Duplicates that belong to the same window
/// are ignored until all that was sent before is acknowledged (ns-2: `bug_fix_`).
class TahoeSocket : public FlowSocket
{
public:
    static ns3::TypeId GetTypeId();

protected:
    void ProcessAck(const ns3::SequenceNumber32& ack, bool scoreboard_updated,
                    std::uint32_t delivered, const ns3::SequenceNumber32& head,
                    bool has_data) override;
    bool GrowsOnLastAckOfLoss() const override { return true; }

private:
    void FastRetransmit();
};

} // namespace replicate
