#include "routing.hpp"

#include "errors.hpp"
#include "fields.hpp"

#include <ns3/ipv4-header.h>
#include <ns3/ipv4-route.h>
#include <ns3/net-device.h>

#include <algorithm>
#include <deque>
#include <map>

namespace replicate
{
namespace
{

constexpr std::uint32_t kFirstAddress = 0x0a000001; // 10.0.0.1
constexpr std::size_t kMostHops = 250;              // below the largest IP time to live

/// Links at each node, in the order of the scenario.
std::vector<std::vector<std::uint32_t>> LinksByNode(const Scenario& scenario)
{
    std::vector<std::vector<std::uint32_t>> at(scenario.nodes.size());
    for (std::uint32_t i = 0; i < scenario.links.size(); ++i)
        for (const auto end : scenario.links[i].ends)
            at[end].push_back(i);
    return at;
}

std::uint32_t OtherEnd(const LinkSpec& link, std::uint32_t node)
{
    return link.ends[0] == node ? link.ends[1] : link.ends[0];
}

} // namespace

std::vector<int> NextLinks(const Scenario& scenario, std::uint32_t destination)
{
    const auto at = LinksByNode(scenario);
    constexpr int kFar = 1 << 30;
    std::vector<int> hops(scenario.nodes.size(), kFar);
    std::deque<std::uint32_t> todo = {destination};
    hops[destination] = 0;
    for (; !todo.empty(); todo.pop_front())
        for (const auto link : at[todo.front()]) {
            const auto other = OtherEnd(scenario.links[link], todo.front());
            if (hops[other] == kFar) {
                hops[other] = hops[todo.front()] + 1;
                todo.push_back(other);
            }
        }
    std::vector<int> next(scenario.nodes.size(), -1);
    for (std::uint32_t node = 0; node < next.size(); ++node)
        for (const auto link : at[node])
            if (next[node] < 0 && hops[node] != kFar &&
                hops[OtherEnd(scenario.links[link], node)] == hops[node] - 1)
                next[node] = static_cast<int>(link);
    return next;
}

std::vector<std::uint32_t> Path(const Scenario& scenario, const std::vector<int>& next,
                                const FlowSpec& flow, std::uint32_t source,
                                std::uint32_t destination)
{
    std::vector<std::uint32_t> path;
    for (auto node = source; node != destination;) {
        if (next[node] < 0)
            Refuse("flow " + flow.id + ".destination",
                   "'" + scenario.nodes[flow.destination] + "' cannot be reached from '" +
                       scenario.nodes[flow.source] + "'",
                   "add links that join them");
        path.push_back(static_cast<std::uint32_t>(next[node]));
        node = OtherEnd(scenario.links[path.back()], node);
    }
    if (path.size() > kMostHops)
        Refuse("flow " + flow.id + ".destination", std::to_string(path.size()) + " hops away",
               "keep paths to at most " + std::to_string(kMostHops) + " hops");
    return path;
}

void CheckPaths(const Scenario& scenario)
{
    std::map<std::uint32_t, std::vector<int>> towards;
    for (const auto& flow : scenario.flows) {
        auto [next, fresh] = towards.try_emplace(flow.destination);
        if (fresh)
            next->second = NextLinks(scenario, flow.destination);
        Path(scenario, next->second, flow, flow.source, flow.destination);
    }
}

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
