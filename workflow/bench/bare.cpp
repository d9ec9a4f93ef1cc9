/// What takes the place of metrics.cpp of replicate-ns3 to see what our measuring costs.
///
/// Linked with all other objects of the program and `-Wl,--wrap` for TraceConnectWithoutContext:
/// the same simulation, event for event, but no hook of ours is in it and nothing is counted. With
/// WITH_FLOW_MONITOR, ns-3's own flow monitor counts instead, on every node, as its helper
/// installs it; what it counted of each data flow is printed (`flow,packets,bytes,delay_s`).

#include "metrics.hpp"

#include <ns3/simulator.h>

#include <string>

#ifdef WITH_FLOW_MONITOR
#include <ns3/flow-monitor-helper.h>
#include <ns3/ipv4-flow-classifier.h>

#include <cstdio>
#endif

extern "C" {
// ObjectBase::TraceConnectWithoutContext(std::string, const CallbackBase&), as the linker knows it.
#define CONNECT                                                                                    \
    _ZN3ns310ObjectBase26TraceConnectWithoutContextENSt7__cxx1112basic_stringIcSt11char_traitsIcES\
aIcEEERKNS_12CallbackBaseE
#define JOIN(a, b) a##b
#define NAMED(a, b) JOIN(a, b)

bool NAMED(__real_, CONNECT)(ns3::ObjectBase*, std::string, const ns3::CallbackBase&);

/// Only the flow control of a device queue stays: it is part of the network.
bool NAMED(__wrap_, CONNECT)(ns3::ObjectBase* object, std::string name,
                             const ns3::CallbackBase& callback)
{
    return (name != "Enqueue" && name != "Dequeue") ||
           NAMED(__real_, CONNECT)(object, name, callback);
}
}

namespace replicate
{

#ifdef WITH_FLOW_MONITOR
namespace
{
ns3::FlowMonitorHelper g_helper;

void Print()
{
    const auto monitor = g_helper.GetMonitor();
    monitor->CheckForLostPackets();
    const auto classifier = ns3::DynamicCast<ns3::Ipv4FlowClassifier>(g_helper.GetClassifier());
    std::FILE* file = std::fopen("flow_monitor.csv", "w");
    if (!file)
        return;
    std::fputs("flow,packets,bytes,delay_s\n", file);
    for (const auto& [id, stats] : monitor->GetFlowStats()) {
        const auto flow = classifier->FindFlow(id);
        // Senders have the lower addresses: acknowledgements go the other way.
        if (flow.sourceAddress < flow.destinationAddress)
            std::fprintf(file, "%u,%u,%llu,%.9f\n", id, stats.rxPackets,
                         static_cast<unsigned long long>(stats.rxBytes),
                         stats.delaySum.GetSeconds());
    }
    std::fclose(file);
}
} // namespace
#endif

void DelayHistogram::Add(std::int64_t) {}
double DelayHistogram::QuantileSeconds(double) const
{
    return 0;
}

Metrics::Metrics(const Scenario& scenario)
    : m_flows(scenario.flows.size()), m_links(2 * scenario.links.size())
{
#ifdef WITH_FLOW_MONITOR
    ns3::Simulator::ScheduleNow([] { g_helper.InstallAll(); });
#endif
}

void Metrics::Sent(std::uint32_t, ns3::Ptr<const ns3::Packet>) {}
void Metrics::Delivered(const ns3::Ipv4Header&, ns3::Ptr<const ns3::Packet>, std::uint32_t) {}
void Metrics::ApplicationReceived(std::uint32_t, std::uint64_t) {}
void Metrics::RttSample(std::uint32_t, std::int64_t) {}
void Metrics::TransmissionBegan(Metrics*, LinkCounters*, ns3::Ptr<const ns3::Packet>) {}
void Metrics::TransmissionEnded(LinkCounters*, ns3::Ptr<const ns3::Packet>) {}
void Metrics::Arrived(Metrics*, ns3::Ptr<const ns3::Packet>) {}
void Metrics::LostOnLink(Metrics*, LinkCounters*, ns3::Ptr<const ns3::Packet>) {}
void Metrics::DroppedByDevice(Metrics*, LinkCounters*, ns3::Ptr<const ns3::Packet>) {}
void Metrics::DroppedByDisc(Metrics*, LinkCounters*, ns3::Ptr<const ns3::QueueDiscItem>) {}
void Metrics::Drained(ns3::Ptr<const ns3::Packet>) {}

void Metrics::CheckConservation(const Scenario&) const
{
#ifdef WITH_FLOW_MONITOR
    Print();
#endif
}

} // namespace replicate
