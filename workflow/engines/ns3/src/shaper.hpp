/// Token bucket before a device.
#pragma once

#include "scenario.hpp"

#include <ns3/queue-disc.h>

namespace replicate
{

/// The rate at which packets pass in a direction.
std::uint64_t LineRate(const LinkSpec& link, int direction);

/// A discipline that lets the packets of `queue` go by the link's shaper in this direction.
ns3::Ptr<ns3::QueueDisc> MakeShaper(const LinkSpec& link, int direction,
                                    ns3::Ptr<ns3::QueueDisc> queue);

} // namespace replicate
