#include "flows.hpp"

#include "reno_socket.hpp"
#include "routing.hpp"
#include "tahoe_socket.hpp"

#include <ns3/inet-socket-address.h>
#include <ns3/ipv4-l3-protocol.h>
#include <ns3/simulator.h>
#include <ns3/tcp-l4-protocol.h>
#include <ns3/udp-socket-factory.h>

#include <cmath>

namespace replicate
{
namespace
{

constexpr std::uint32_t kUdpIpHeaderBytes = 28;

/// As TcpL4Protocol::CreateSocket does, but with a socket class of ours.
ns3::Ptr<FlowSocket> MakeSocket(const FlowSpec& spec, ns3::Ptr<ns3::Node> node, bool sender)
{
    ns3::Ptr<FlowSocket> socket;
    if (sender && spec.congestion_control == "tahoe")
        socket = ns3::CreateObject<TahoeSocket>();
    else if (sender && spec.congestion_control == "reno")
        socket = ns3::CreateObject<RenoSocket>();
    else
        socket = ns3::CreateObject<FlowSocket>();
    auto tcp = node->GetObject<ns3::TcpL4Protocol>();
    socket->SetNode(node);
    socket->SetTcp(tcp);
    socket->Configure(spec);
    tcp->AddSocket(socket);
    return socket;
}

void TcpReceived(Metrics* metrics, std::uint32_t flow, ns3::Ptr<ns3::Socket> socket)
{
    metrics->ApplicationReceived(flow, static_cast<FlowSocket&>(*socket).TakeReceived());
}

void TcpAccepted(Metrics* metrics, std::uint32_t flow, ns3::Ptr<ns3::Socket> socket,
                 const ns3::Address&)
{
    socket->SetRecvCallback(ns3::MakeBoundCallback(&TcpReceived, metrics, flow));
}

void CbrReceived(Metrics* metrics, std::uint32_t flow, ns3::Ptr<ns3::Socket> socket)
{
    while (auto packet = socket->Recv())
        metrics->ApplicationReceived(flow, packet->GetSize());
}

void ConnectTcp(ns3::Ptr<FlowSocket> socket, ns3::Address peer)
{
    socket->Connect(peer);
}

void BeginTcp(ns3::Ptr<FlowSocket> socket)
{
    socket->Begin();
}

void StopTcp(ns3::Ptr<FlowSocket> socket)
{
    socket->Stop();
}

} // namespace

CbrSource::CbrSource(const FlowSpec& spec, std::uint32_t flow, ns3::Ptr<ns3::Socket> socket,
                     Metrics& metrics)
    : m_spec(spec), m_flow(flow), m_socket(std::move(socket)), m_metrics(metrics)
{
    ScheduleNext();
}

void CbrSource::ScheduleNext()
{
    const long double offset = 8e9L * m_spec.packet_bytes * m_count / m_spec.rate_bps;
    if (offset >= static_cast<long double>(m_spec.stop_ns - m_spec.start_ns))
        return;
    const auto at = m_spec.start_ns + static_cast<std::int64_t>(std::llround(offset));
    ns3::Simulator::Schedule(ns3::NanoSeconds(at) - ns3::Simulator::Now(), &CbrSource::Send, this);
}

void CbrSource::Send()
{
    auto packet = ns3::Create<ns3::Packet>(m_spec.packet_bytes - kUdpIpHeaderBytes);
    m_metrics.Sent(m_flow, packet);
    m_socket->Send(packet);
    ++m_count;
    ScheduleNext();
}

Flows::Flows(const Scenario& scenario, const Topology& topology, Metrics& metrics, Trace& trace)
    : m_scenario(scenario), m_metrics(metrics), m_trace(trace),
      m_ports(scenario.nodes.size(), 1024), m_senders(scenario.flows.size())
{
    std::vector<bool> hooked(scenario.nodes.size());
    for (std::uint32_t i = 0; i < scenario.flows.size(); ++i) {
        const auto& spec = scenario.flows[i];
        const auto source = topology.Node(spec.source);
        const auto destination = topology.Node(spec.destination);
        if (!hooked[spec.destination])
            destination->GetObject<ns3::Ipv4L3Protocol>()->TraceConnectWithoutContext(
                "LocalDeliver", ns3::MakeCallback(&Metrics::Delivered, &metrics));
        hooked[spec.destination] = true;
        if (spec.tcp)
            MakeTcp(i, source, destination);
        else
            MakeCbr(i, source, destination);
    }
}

std::uint16_t Flows::NextPort(std::uint32_t node)
{
    return ++m_ports[node];
}

void Flows::MakeTcp(std::uint32_t flow, ns3::Ptr<ns3::Node> source, ns3::Ptr<ns3::Node> destination)
{
    const auto& spec = m_scenario.flows[flow];
    const ns3::InetSocketAddress from(NodeAddress(spec.source), NextPort(spec.source));
    const ns3::InetSocketAddress to(NodeAddress(spec.destination), NextPort(spec.destination));
    auto listener = MakeSocket(spec, destination, false);
    listener->Bind(to);
    listener->Listen();
    listener->SetAcceptCallback(
        ns3::MakeNullCallback<bool, ns3::Ptr<ns3::Socket>, const ns3::Address&>(),
        ns3::MakeBoundCallback(&TcpAccepted, &m_metrics, flow));
    m_sinks.push_back(listener);
    auto sender = MakeSocket(spec, source, true);
    sender->Bind(from);
    sender->BecomeSender(&m_metrics, &m_trace, flow);
    m_senders[flow] = sender;
    ns3::Simulator::Schedule(ns3::NanoSeconds(spec.connect_ns), &ConnectTcp, sender,
                             ns3::Address(to));
    if (spec.connect_ns == spec.start_ns)
        sender->Begin();
    else
        ns3::Simulator::Schedule(ns3::NanoSeconds(spec.start_ns), &BeginTcp, sender);
    ns3::Simulator::Schedule(ns3::NanoSeconds(spec.stop_ns), &StopTcp, sender);
}

void Flows::MakeCbr(std::uint32_t flow, ns3::Ptr<ns3::Node> source, ns3::Ptr<ns3::Node> destination)
{
    const auto& spec = m_scenario.flows[flow];
    const ns3::InetSocketAddress from(NodeAddress(spec.source), NextPort(spec.source));
    const ns3::InetSocketAddress to(NodeAddress(spec.destination), NextPort(spec.destination));
    auto sink = ns3::Socket::CreateSocket(destination, ns3::UdpSocketFactory::GetTypeId());
    sink->Bind(to);
    sink->SetRecvCallback(ns3::MakeBoundCallback(&CbrReceived, &m_metrics, flow));
    m_sinks.push_back(sink);
    auto socket = ns3::Socket::CreateSocket(source, ns3::UdpSocketFactory::GetTypeId());
    socket->Bind(from);
    socket->Connect(to);
    m_cbr.push_back(std::make_unique<CbrSource>(spec, flow, socket, m_metrics));
}

const FlowSocket* Flows::ActiveSender(std::uint32_t flow) const
{
    const auto now = ns3::Simulator::Now().GetNanoSeconds();
    const auto& spec = m_scenario.flows[flow];
    const auto* sender = ns3::PeekPointer(m_senders[flow]);
    const bool active = spec.start_ns <= now && now <= m_metrics.Flow(flow).stop_ns;
    return active && sender && sender->Connected() ? sender : nullptr;
}

} // namespace replicate
