#include "topology.hpp"

#include "gate.hpp"
#include "loss.hpp"
#include "queues.hpp"
#include "routing.hpp"
#include "wire.hpp"

#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-interface-address.h>
#include <ns3/ipv4-l3-protocol.h>
#include <ns3/ipv4-routing-helper.h>
#include <ns3/net-device-queue-interface.h>
#include <ns3/simulator.h>
#include <ns3/traffic-control-layer.h>
#include <ns3/uinteger.h>

namespace replicate
{
namespace
{

/// Random streams of one link direction: loss first, then the queue discipline's, last the jitter.
constexpr std::int64_t kStreamsPerDirection = 4;

std::int64_t StreamOf(std::uint32_t link, int direction)
{
    return kStreamsPerDirection * (2 * std::int64_t{link} + direction);
}

/// The largest there is: segments are never fragmented.
constexpr std::uint16_t kMtu = 65535;

class StaticRoutingHelper : public ns3::Ipv4RoutingHelper
{
public:
    StaticRoutingHelper* Copy() const override { return new StaticRoutingHelper(*this); }
    ns3::Ptr<ns3::Ipv4RoutingProtocol> Create(ns3::Ptr<ns3::Node>) const override
    {
        return ns3::CreateObject<StaticRouting>();
    }
};

ns3::Ptr<StaticRouting> RoutingOf(ns3::Ptr<ns3::Node> node)
{
    return ns3::DynamicCast<StaticRouting>(node->GetObject<ns3::Ipv4>()->GetRoutingProtocol());
}

using DeviceQueue = ns3::Queue<ns3::Packet>;

bool IsFull(const DeviceQueue* queue)
{
    return queue->WouldOverflow(1, kMtu);
}

/// Flow control between queue discipline and device queue, as NetDeviceQueue::ConnectQueueTraces
/// does it, but for the event it schedules at every dequeue: one is needed only while stopped.
void StopWhenFull(ns3::NetDeviceQueue* tx, DeviceQueue* queue, ns3::Ptr<const ns3::Packet>)
{
    if (IsFull(queue))
        tx->Stop();
}

void WakeWhenStopped(ns3::NetDeviceQueue* tx, DeviceQueue* queue, ns3::Ptr<const ns3::Packet>)
{
    if (!tx->IsStopped())
        return;
    ns3::Simulator::ScheduleNow([tx, queue] {
        if (!IsFull(queue))
            tx->Wake();
    });
}

/// The losses of a direction; none for now if they only come with a change.
std::optional<LossSpec> LossOf(const LinkSpec& link, int direction)
{
    for (const auto& change : link.changes)
        if (change.loss[direction] && !link.loss[direction])
            return LossSpec();
    return link.loss[direction];
}

} // namespace

std::uint32_t Egress::Waiting() const
{
    return queue->GetNPackets() + (disc ? disc->GetNPackets() : 0);
}

Topology::Topology(const Scenario& scenario, Metrics& metrics)
    : m_links(scenario.links), m_egress(2 * scenario.links.size())
{
    m_nodes.Create(static_cast<std::uint32_t>(scenario.nodes.size()));
    for (std::uint32_t i = 0; i < scenario.links.size(); ++i)
        MakeLink(scenario, i);
    ns3::InternetStackHelper internet;
    internet.SetIpv6StackInstall(false);
    internet.SetRoutingHelper(StaticRoutingHelper());
    internet.Install(m_nodes);
    MakeAddresses();
    for (std::uint32_t i = 0; i < scenario.links.size(); ++i) {
        MakeQueues(scenario, i);
        MakeHooks(scenario, metrics, i);
        for (const auto& change : scenario.links[i].changes)
            ns3::Simulator::Schedule(ns3::NanoSeconds(change.at_ns), &Topology::Change, this, i,
                                     change);
    }
    MakeRoutes(scenario);
}

void Topology::MakeLink(const Scenario& scenario, std::uint32_t link)
{
    const auto& spec = scenario.links[link];
    const std::int64_t streams[] = {StreamOf(link, 0) + 3, StreamOf(link, 1) + 3};
    auto channel = MakeChannel(spec, streams);
    for (int i = 0; i < 2; ++i) {
        auto& egress = m_egress[2 * link + i];
        egress.queue = HasGate(spec, i) ? MakeLineQueue() : MakeDeviceQueue(spec.queue[i]);
        egress.device = ns3::CreateObject<ns3::PointToPointNetDevice>();
        egress.device->SetAddress(ns3::Mac48Address::Allocate());
        egress.device->SetMtu(kMtu);
        egress.device->SetDataRate(ns3::DataRate(LineRate(spec, i)));
        egress.device->SetInterframeGap(FrameTime(spec, i));
        egress.device->SetQueue(egress.queue);
        m_nodes.Get(spec.ends[i])->AddDevice(egress.device);
        egress.device->Attach(channel);
    }
}

/// All interfaces of a node share its one address (unnumbered links). Adding addresses by hand
/// also keeps ns-3's helper from installing its default queue discipline.
void Topology::MakeAddresses()
{
    for (std::uint32_t i = 0; i < m_nodes.GetN(); ++i) {
        auto ipv4 = m_nodes.Get(i)->GetObject<ns3::Ipv4L3Protocol>();
        ipv4->SetAttribute("DefaultTtl", ns3::UintegerValue(255));
        RoutingOf(m_nodes.Get(i))->SetSelf(NodeAddress(i));
    }
    for (std::uint32_t i = 0; i < m_egress.size(); ++i) {
        const auto node = m_egress[i].device->GetNode();
        auto ipv4 = node->GetObject<ns3::Ipv4>();
        const auto interface = ipv4->AddInterface(m_egress[i].device);
        ipv4->AddAddress(interface, ns3::Ipv4InterfaceAddress(NodeAddress(node->GetId()),
                                                              ns3::Ipv4Mask::GetOnes()));
        ipv4->SetUp(interface);
    }
}

/// A discipline needs to know when the device's queue is full; a bare DropTail queue must not say
/// so, since then the layer above would drop in its place, unseen.
void Topology::MakeQueues(const Scenario& scenario, std::uint32_t link)
{
    const auto& spec = scenario.links[link];
    for (int i = 0; i < 2; ++i) {
        auto& egress = m_egress[2 * link + i];
        const auto stream = StreamOf(link, i);
        egress.disc = MakeQueueDisc(spec.queue[i], spec, stream + 1);
        if (HasGate(spec, i) && !egress.disc)
            egress.disc = MakeFifo(spec.queue[i]);
        if (const auto loss = LossOf(spec, i)) {
            egress.loss = MakeLoss(*loss, stream);
            m_egress[2 * link + 1 - i].device->SetReceiveErrorModel(egress.loss);
        }
        if (!egress.disc)
            continue;
        auto interface = ns3::CreateObject<ns3::NetDeviceQueueInterface>();
        egress.device->AggregateObject(interface);
        const auto tx = ns3::PeekPointer(interface->GetTxQueue(0));
        const auto device_queue = ns3::PeekPointer(egress.queue);
        egress.queue->TraceConnectWithoutContext(
            "Enqueue", ns3::MakeBoundCallback(&StopWhenFull, tx, device_queue));
        egress.queue->TraceConnectWithoutContext(
            "Dequeue", ns3::MakeBoundCallback(&WakeWhenStopped, tx, device_queue));
        auto layer = egress.device->GetNode()->GetObject<ns3::TrafficControlLayer>();
        layer->SetRootQueueDiscOnDevice(
            egress.device, HasGate(spec, i) ? MakeGate(spec, i, egress.disc) : egress.disc);
    }
}

void Topology::MakeHooks(const Scenario& scenario, Metrics& metrics, std::uint32_t link)
{
    for (int i = 0; i < 2; ++i) {
        auto& egress = m_egress[2 * link + i];
        auto& receiver = m_egress[2 * link + 1 - i].device;
        auto* counters = &metrics.Link(link, i);
        egress.device->TraceConnectWithoutContext(
            "PhyTxBegin", ns3::MakeBoundCallback(&Metrics::TransmissionBegan, &metrics, counters));
        receiver->TraceConnectWithoutContext("PhyRxEnd",
                                             ns3::MakeBoundCallback(&Metrics::Arrived, &metrics));
        receiver->TraceConnectWithoutContext(
            "PhyRxDrop", ns3::MakeBoundCallback(&Metrics::LostOnLink, &metrics, counters));
        egress.queue->TraceConnectWithoutContext(
            "Drop", ns3::MakeBoundCallback(&Metrics::DroppedByDevice, &metrics, counters));
        if (egress.disc)
            egress.disc->TraceConnectWithoutContext(
                "Drop", ns3::MakeBoundCallback(&Metrics::DroppedByDisc, &metrics, counters));
        for (const auto& monitor : scenario.monitors)
            if (monitor.link == link && monitor.direction == i)
                egress.device->TraceConnectWithoutContext(
                    "PhyTxEnd", ns3::MakeBoundCallback(&Metrics::TransmissionEnded, counters));
    }
}

void Topology::MakeRoutes(const Scenario& scenario)
{
    for (const auto& route : scenario.routes) {
        const auto& device = m_egress[2 * route.by.link + route.by.direction].device;
        RoutingOf(device->GetNode())->AddRoute(NodeAddress(route.to), device);
    }
}

/// A packet that is being transmitted ends at the old rate.
void Topology::Change(std::uint32_t link, const LinkChange& change)
{
    auto& spec = m_links[link];
    spec.rate_bps = change.rate_bps.value_or(spec.rate_bps);
    spec.delay_ns = change.delay_ns.value_or(spec.delay_ns);
    for (int i = 0; i < 2; ++i) {
        const auto& egress = m_egress[2 * link + i];
        egress.device->SetDataRate(ns3::DataRate(LineRate(spec, i)));
        egress.device->SetInterframeGap(FrameTime(spec, i));
        if (change.loss[i])
            ChangeLoss(egress.loss, *change.loss[i]);
    }
    const auto channel = m_egress[2 * link].device->GetChannel();
    ChangeChannel(ns3::DynamicCast<ns3::PointToPointChannel>(channel), spec);
}

void Topology::Drain(Metrics& metrics)
{
    metrics.BeginDrain();
    for (auto& egress : m_egress) {
        if (egress.disc)
            while (auto item = egress.disc->Dequeue())
                metrics.Drained(item->GetPacket());
        while (auto packet = egress.queue->Dequeue())
            metrics.Drained(packet);
    }
}

} // namespace replicate
