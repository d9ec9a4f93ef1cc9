/// What lets the packets of a queue go to the device: a token bucket, or opportunities.
#pragma once

#include "scenario.hpp"

#include <ns3/queue-disc.h>

namespace replicate
{

/// The rate at which packets pass in a direction.
std::uint64_t LineRate(const LinkSpec& link, int direction);

/// Whether a direction has a shaper or opportunities, which decide when packets go.
bool HasGate(const LinkSpec& link, int direction);

/// A discipline that lets the packets of `queue` go as the direction's shaper or opportunities do.
ns3::Ptr<ns3::QueueDisc> MakeGate(const LinkSpec& link, int direction,
                                  ns3::Ptr<ns3::QueueDisc> queue);

} // namespace replicate
