/// Links: the bytes of a packet that ns-3's point-to-point device does not count, and its delay.
#pragma once

#include "scenario.hpp"

#include <ns3/point-to-point-channel.h>
#include <ns3/random-variable-stream.h>

namespace replicate
{

/// The time that a packet's frame takes beyond what the device adds itself.
ns3::Time FrameTime(const LinkSpec& link, int direction);

/// The channel of a link; `streams` are the random streams of its directions.
ns3::Ptr<ns3::PointToPointChannel> MakeChannel(const LinkSpec& link, const std::int64_t streams[2]);

/// Give the channel of a link with changes its present values.
void ChangeChannel(const ns3::Ptr<ns3::PointToPointChannel>& channel, const LinkSpec& link);

} // namespace replicate
