/// Nodes, point-to-point links, their queues and the hooks that count packets on them.
#pragma once

#include "metrics.hpp"
#include "scenario.hpp"

#include <ns3/drop-tail-queue.h>
#include <ns3/error-model.h>
#include <ns3/node-container.h>
#include <ns3/packet.h>
#include <ns3/point-to-point-net-device.h>
#include <ns3/queue-disc.h>

#include <vector>

namespace replicate
{

/// Egress of one link direction.
struct Egress {
    ns3::Ptr<ns3::PointToPointNetDevice> device;
    ns3::Ptr<ns3::Queue<ns3::Packet>> queue;
    ns3::Ptr<ns3::QueueDisc> disc;  ///< null for kind droptail without a shaper or opportunities
    ns3::Ptr<ns3::ErrorModel> loss; ///< at the other end; may be null

    /// Packets that wait; the one being transmitted has left the queue.
    std::uint32_t Waiting() const;
};

class Topology
{
public:
    Topology(const Scenario& scenario, Metrics& metrics);

    ns3::Ptr<ns3::Node> Node(std::uint32_t node) const { return m_nodes.Get(node); }
    const Egress& Link(std::uint32_t link, int direction) const
    {
        return m_egress[2 * link + direction];
    }

    /// Empty all queues after the run, so that what they hold is counted.
    void Drain(Metrics& metrics);

private:
    void MakeLink(const Scenario& scenario, std::uint32_t link);
    void MakeAddresses();
    void MakeQueues(const Scenario& scenario, std::uint32_t link);
    void MakeHooks(const Scenario& scenario, Metrics& metrics, std::uint32_t link);
    void MakeRoutes(const Scenario& scenario);
    void Change(std::uint32_t link, const LinkChange& change);

    ns3::NodeContainer m_nodes;
    std::vector<LinkSpec> m_links; ///< as they are now
    std::vector<Egress> m_egress;
};

} // namespace replicate
