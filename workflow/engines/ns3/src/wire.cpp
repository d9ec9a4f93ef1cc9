#include "wire.hpp"

#include "gate.hpp"

#include <ns3/point-to-point-net-device.h>
#include <ns3/simulator.h>

#include <algorithm>

namespace replicate
{
namespace
{

/// Framing that the point-to-point device adds to an IP packet.
constexpr std::uint32_t kPppHeaderBytes = 2;

/// A packet arrives once its whole frame has passed, and never before an earlier one: not if the
/// delay has become shorter, and not by jitter. With jitter it begins to arrive at the earliest
/// when the one before has arrived (as Linux's sch_netem.c has it with a rate).
class Wire : public ns3::PointToPointChannel
{
public:
    explicit Wire(const std::int64_t streams[2])
    {
        for (int i = 0; i < 2; ++i) {
            m_jitter[i] = ns3::CreateObject<ns3::UniformRandomVariable>();
            m_jitter[i]->SetStream(streams[i]);
        }
    }

    void Change(const LinkSpec& link)
    {
        SetAttribute("Delay", ns3::TimeValue(ns3::NanoSeconds(link.delay_ns)));
        m_jitter_ns = link.jitter_ns;
        for (int i = 0; i < 2; ++i)
            m_frame[i] = FrameTime(link, i);
    }

    bool TransmitStart(ns3::Ptr<const ns3::Packet> packet,
                       ns3::Ptr<ns3::PointToPointNetDevice> source, ns3::Time duration) override
    {
        const int way = source == GetPointToPointDevice(0) ? 0 : 1;
        const auto now = ns3::Simulator::Now();
        auto begins = now + GetDelay();
        if (m_jitter_ns > 0) {
            begins += ns3::NanoSeconds(static_cast<std::int64_t>(
                m_jitter[way]->GetValue(0, static_cast<double>(m_jitter_ns))));
            begins = std::max(begins, m_arrived[way]);
        }
        m_arrived[way] = std::max(begins + duration + m_frame[way], m_arrived[way]);
        return PointToPointChannel::TransmitStart(packet, source,
                                                  m_arrived[way] - now - GetDelay());
    }

private:
    std::int64_t m_jitter_ns = 0;
    ns3::Time m_frame[2];
    ns3::Time m_arrived[2]; ///< of the last packet
    ns3::Ptr<ns3::UniformRandomVariable> m_jitter[2];
};

} // namespace

ns3::Time FrameTime(const LinkSpec& link, int direction)
{
    if (link.frame_bytes == 0)
        return ns3::NanoSeconds(0);
    const auto bits = 8e9L * (link.frame_bytes - kPppHeaderBytes);
    return ns3::NanoSeconds(static_cast<std::int64_t>(bits / LineRate(link, direction)));
}

ns3::Ptr<ns3::PointToPointChannel> MakeChannel(const LinkSpec& link, const std::int64_t streams[2])
{
    if (link.frame_bytes > 0 || link.jitter_ns > 0 || !link.changes.empty()) {
        auto wire = ns3::CreateObject<Wire>(streams);
        wire->Change(link);
        return wire;
    }
    auto channel = ns3::CreateObject<ns3::PointToPointChannel>();
    channel->SetAttribute("Delay", ns3::TimeValue(ns3::NanoSeconds(link.delay_ns)));
    return channel;
}

void ChangeChannel(const ns3::Ptr<ns3::PointToPointChannel>& channel, const LinkSpec& link)
{
    ns3::DynamicCast<Wire>(channel)->Change(link);
}

} // namespace replicate
