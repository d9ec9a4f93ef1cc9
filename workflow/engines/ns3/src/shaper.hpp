/// Token bucket before a device, and links whose packets have a frame.
#pragma once

#include "scenario.hpp"

#include <ns3/point-to-point-channel.h>
#include <ns3/queue-disc.h>

namespace replicate
{

/// The rate at which packets pass in a direction.
std::uint64_t LineRate(const LinkSpec& link, int direction);

/// A discipline that lets the packets of `queue` go by the link's shaper in this direction.
ns3::Ptr<ns3::QueueDisc> MakeShaper(const LinkSpec& link, int direction,
                                    ns3::Ptr<ns3::QueueDisc> queue);

/// The time by which a packet takes longer than ns-3's point-to-point device has it.
ns3::Time FrameTime(const LinkSpec& link, int direction);

/// A channel on which a packet arrives once its whole frame has passed.
class FramedChannel : public ns3::PointToPointChannel
{
public:
    bool TransmitStart(ns3::Ptr<const ns3::Packet> packet,
                       ns3::Ptr<ns3::PointToPointNetDevice> source, ns3::Time duration) override;
};

} // namespace replicate
