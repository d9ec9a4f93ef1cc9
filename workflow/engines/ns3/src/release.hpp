/// What differs between the releases of ns-3 that this program is built against.
///
/// The Makefile reads the release from the package itself: REPLICATE_NS3_RELEASE is its text,
/// REPLICATE_NS3_MINOR the number after "3.".
#pragma once

#include <ns3/tcp-socket-base.h>
#include <ns3/tcp-tx-buffer.h>

#include <cstdint>

namespace replicate
{

/// Version of the simulator, as `--version` and run.json state it.
inline constexpr const char* kSimulatorVersion = REPLICATE_NS3_RELEASE;

/// Before 3.38 Westwood+ is a mode of a class that is plain Westwood by default.
inline constexpr bool kWestwoodPlusIsMode = REPLICATE_NS3_MINOR < 38;

/// Before 3.41 CUBIC has no Reno-friendly region (ns-3's release notes, #1001).
inline constexpr bool kCubicHasFriendliness = REPLICATE_NS3_MINOR >= 41;

#if REPLICATE_NS3_MINOR >= 39
/// How Ipv4RoutingProtocol::RouteInput takes its callbacks.
template <typename Callback>
using RouteInputCallback = const Callback&;
#else
template <typename Callback>
using RouteInputCallback = Callback;
#endif

#if REPLICATE_NS3_MINOR >= 43
using SocketBase = ns3::TcpSocketBase;
#else
/// Before 3.43 ProcessAck is not told whether the acknowledgement came with data. None does here:
/// data flow one way.
class SocketBase : public ns3::TcpSocketBase
{
protected:
    virtual void ProcessAck(const ns3::SequenceNumber32& ack, bool scoreboard_updated,
                            std::uint32_t delivered, const ns3::SequenceNumber32& head, bool)
    {
        ns3::TcpSocketBase::ProcessAck(ack, scoreboard_updated, delivered, head);
    }

    /// With the receiver's window full to the byte, 3.39 takes a new segment of no bytes to be the
    /// next to send, and crashes on it. Nothing can be sent then.
    std::uint32_t AvailableWindow() const override
    {
        const std::uint32_t available = ns3::TcpSocketBase::AvailableWindow();
        if (available == 0 || UnAckDataCount() < m_rWnd)
            return available;
        ns3::SequenceNumber32 next, end;
        const bool recovering = m_tcb->m_congState == ns3::TcpSocketState::CA_RECOVERY;
        return m_txBuffer->NextSeg(&next, &end, recovering) && next == end ? 0 : available;
    }

private:
    void ProcessAck(const ns3::SequenceNumber32& ack, bool scoreboard_updated,
                    std::uint32_t delivered, const ns3::SequenceNumber32& head) final
    {
        ProcessAck(ack, scoreboard_updated, delivered, head, false);
    }
};
#endif

} // namespace replicate
