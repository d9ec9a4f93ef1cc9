/// Static routing by the routes of the input file.
///
/// ns-3's global routing computes a table of every subnet for every node and searches it linearly
/// for every packet; with a thousand nodes both are too slow.
#pragma once

#include "release.hpp"

#include <ns3/ipv4-routing-protocol.h>
#include <ns3/ipv4.h>

#include <unordered_map>

namespace replicate
{

/// One address a node: 10.0.0.1 onwards in the order of the scenario.
ns3::Ipv4Address NodeAddress(std::uint32_t node);

class StaticRouting : public ns3::Ipv4RoutingProtocol
{
public:
    static ns3::TypeId GetTypeId();

    void AddRoute(ns3::Ipv4Address destination, ns3::Ptr<ns3::NetDevice> device);

    ns3::Ptr<ns3::Ipv4Route> RouteOutput(ns3::Ptr<ns3::Packet> packet,
                                         const ns3::Ipv4Header& header,
                                         ns3::Ptr<ns3::NetDevice> device,
                                         ns3::Socket::SocketErrno& error) override;
    bool RouteInput(ns3::Ptr<const ns3::Packet> packet, const ns3::Ipv4Header& header,
                    ns3::Ptr<const ns3::NetDevice> device,
                    RouteInputCallback<UnicastForwardCallback> forward,
                    RouteInputCallback<MulticastForwardCallback> multicast,
                    RouteInputCallback<LocalDeliverCallback> deliver,
                    RouteInputCallback<ErrorCallback> error) override;
    void NotifyInterfaceUp(std::uint32_t) override {}
    void NotifyInterfaceDown(std::uint32_t) override {}
    void NotifyAddAddress(std::uint32_t, ns3::Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(std::uint32_t, ns3::Ipv4InterfaceAddress) override {}
    void SetIpv4(ns3::Ptr<ns3::Ipv4> ipv4) override { m_ipv4 = ipv4; }
    void PrintRoutingTable(ns3::Ptr<ns3::OutputStreamWrapper>, ns3::Time::Unit) const override {}
    void SetSelf(ns3::Ipv4Address self) { m_self = self; }

private:
    void DoDispose() override;
    ns3::Ptr<ns3::Ipv4Route> Lookup(ns3::Ipv4Address destination);

    ns3::Ptr<ns3::Ipv4> m_ipv4;
    ns3::Ipv4Address m_self;
    std::unordered_map<std::uint32_t, ns3::Ptr<ns3::Ipv4Route>> m_routes; ///< by destination
};

} // namespace replicate
