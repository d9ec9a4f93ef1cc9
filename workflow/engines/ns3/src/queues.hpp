/// Egress queues: the device's own DropTail queue and, for all other kinds, a discipline before it.
#pragma once

#include "scenario.hpp"

#include <ns3/drop-tail-queue.h>
#include <ns3/packet.h>
#include <ns3/queue-disc.h>

namespace replicate
{

/// Queue of the device itself.
ns3::Ptr<ns3::Queue<ns3::Packet>> MakeDeviceQueue(const QueueSpec& spec);

/// Queue of a device behind a shaper, which holds back nothing.
ns3::Ptr<ns3::Queue<ns3::Packet>> MakeLineQueue();

/// Kind droptail as a discipline, for a shaper.
ns3::Ptr<ns3::QueueDisc> MakeFifo(const QueueSpec& spec);

/// Queue discipline for the egress of a link, or null for kind droptail.
/// `stream` is the first of its two random streams.
ns3::Ptr<ns3::QueueDisc> MakeQueueDisc(const QueueSpec& spec, const LinkSpec& link,
                                       std::int64_t stream);

} // namespace replicate
