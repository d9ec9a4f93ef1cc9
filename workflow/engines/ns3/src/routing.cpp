#include "routing.hpp"

#include <ns3/ipv4-header.h>
#include <ns3/ipv4-route.h>
#include <ns3/net-device.h>

namespace replicate
{
namespace
{

constexpr std::uint32_t kFirstAddress = 0x0a000001; // 10.0.0.1

} // namespace

ns3::Ipv4Address NodeAddress(std::uint32_t node)
{
    return ns3::Ipv4Address(kFirstAddress + node);
}

NS_OBJECT_ENSURE_REGISTERED(StaticRouting);

ns3::TypeId StaticRouting::GetTypeId()
{
    static const ns3::TypeId type = ns3::TypeId("replicate::StaticRouting")
                                        .SetParent<ns3::Ipv4RoutingProtocol>()
                                        .AddConstructor<StaticRouting>();
    return type;
}

void StaticRouting::AddRoute(ns3::Ipv4Address destination, ns3::Ptr<ns3::NetDevice> device)
{
    auto route = ns3::Create<ns3::Ipv4Route>();
    route->SetDestination(destination);
    route->SetGateway(destination);
    route->SetSource(m_self);
    route->SetOutputDevice(device);
    m_routes[destination.Get()] = route;
}

ns3::Ptr<ns3::Ipv4Route> StaticRouting::Lookup(ns3::Ipv4Address destination)
{
    const auto found = m_routes.find(destination.Get());
    return found != m_routes.end() ? found->second : nullptr;
}

ns3::Ptr<ns3::Ipv4Route> StaticRouting::RouteOutput(ns3::Ptr<ns3::Packet>,
                                                    const ns3::Ipv4Header& header,
                                                    ns3::Ptr<ns3::NetDevice>,
                                                    ns3::Socket::SocketErrno& error)
{
    auto route = Lookup(header.GetDestination());
    error = route ? ns3::Socket::ERROR_NOTERROR : ns3::Socket::ERROR_NOROUTETOHOST;
    return route;
}

bool StaticRouting::RouteInput(ns3::Ptr<const ns3::Packet> packet, const ns3::Ipv4Header& header,
                               ns3::Ptr<const ns3::NetDevice> device,
                               RouteInputCallback<UnicastForwardCallback> forward,
                               RouteInputCallback<MulticastForwardCallback>,
                               RouteInputCallback<LocalDeliverCallback> deliver,
                               RouteInputCallback<ErrorCallback>)
{
    if (header.GetDestination() == m_self) {
        deliver(packet, header, m_ipv4->GetInterfaceForDevice(device));
        return true;
    }
    const auto route = Lookup(header.GetDestination());
    if (!route)
        return false;
    forward(route, packet, header);
    return true;
}

void StaticRouting::DoDispose()
{
    m_ipv4 = nullptr;
    m_routes.clear();
    ns3::Ipv4RoutingProtocol::DoDispose();
}

} // namespace replicate
