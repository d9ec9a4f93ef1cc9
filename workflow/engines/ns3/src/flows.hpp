/// Traffic: TCP bulk transfers and CBR streams, from their start to their stop.
#pragma once

#include "flow_socket.hpp"
#include "metrics.hpp"
#include "topology.hpp"
#include "trace.hpp"

#include <ns3/udp-socket.h>

#include <memory>
#include <vector>

namespace replicate
{

/// UDP packets at exact spacing: the n-th leaves at start + n * packet bits / rate, without drift.
class CbrSource
{
public:
    CbrSource(const FlowSpec& spec, std::uint32_t flow, ns3::Ptr<ns3::Socket> socket,
              Metrics& metrics);

private:
    void Send();
    void ScheduleNext();

    const FlowSpec& m_spec;
    std::uint32_t m_flow;
    ns3::Ptr<ns3::Socket> m_socket;
    Metrics& m_metrics;
    std::uint64_t m_count = 0;
};

/// All flows of a scenario.
class Flows
{
public:
    Flows(const Scenario& scenario, const Topology& topology, Metrics& metrics, Trace& trace);

    /// The sender of a TCP flow while it is active, else null.
    const FlowSocket* ActiveSender(std::uint32_t flow) const;

private:
    void MakeTcp(std::uint32_t flow, ns3::Ptr<ns3::Node> source, ns3::Ptr<ns3::Node> destination);
    void MakeCbr(std::uint32_t flow, ns3::Ptr<ns3::Node> source, ns3::Ptr<ns3::Node> destination);
    /// A port that no other flow uses at this node.
    std::uint16_t NextPort(std::uint32_t node);

    const Scenario& m_scenario;
    Metrics& m_metrics;
    Trace& m_trace;
    std::vector<std::uint16_t> m_ports;
    std::vector<ns3::Ptr<FlowSocket>> m_senders;
    std::vector<ns3::Ptr<ns3::Socket>> m_sinks;
    std::vector<std::unique_ptr<CbrSource>> m_cbr;
};

} // namespace replicate
