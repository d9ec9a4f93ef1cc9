#include "westwood.hpp"

#include <ns3/simulator.h>

#include <algorithm>

namespace replicate
{
namespace
{

/// The paper leaves the filter's time constant open; this is the value in its authors' module for
/// ns-2 (`tau_`, 2002), as is half of it for a sample of zero.
constexpr double kTimeConstant_s = 1;
constexpr double kSilence_s = kTimeConstant_s / 2;

} // namespace

NS_OBJECT_ENSURE_REGISTERED(Westwood);
NS_OBJECT_ENSURE_REGISTERED(WestwoodRecovery);

ns3::TypeId Westwood::GetTypeId()
{
    static const ns3::TypeId type =
        ns3::TypeId("replicate::Westwood").SetParent<ns3::TcpNewReno>().AddConstructor<Westwood>();
    return type;
}

void Westwood::Acknowledged(std::uint32_t bytes, std::uint32_t segment, ns3::Time round_trip)
{
    if (round_trip.IsStrictlyPositive())
        m_least_round_trip = std::min(m_least_round_trip, round_trip);
    m_unsampled += Delivered(bytes, segment);
    const ns3::Time now = ns3::Simulator::Now();
    if (m_started && now == m_acknowledged)
        return;
    if (m_started) {
        FilterSilence();
        Filter(m_unsampled / (now - m_acknowledged).GetSeconds(), (now - m_sampled).GetSeconds());
    }
    m_started = true;
    m_acknowledged = now;
    m_sampled = now;
    m_unsampled = 0;
}

void Westwood::Filter(double sample_Bps, double interval_s)
{
    const double gain = (2 * kTimeConstant_s - interval_s) / (2 * kTimeConstant_s + interval_s);
    m_estimate_Bps = gain * m_estimate_Bps + (1 - gain) * (sample_Bps + m_sample_Bps) / 2;
    m_sample_Bps = sample_Bps;
}

void Westwood::FilterSilence()
{
    const ns3::Time silence = ns3::Seconds(kSilence_s);
    while (ns3::Simulator::Now() - m_sampled > silence) {
        Filter(0, kSilence_s);
        m_sampled += silence;
    }
}

/// The paper's AckedCount: a duplicate stands for one segment; an acknowledgement of more than one,
/// for what its duplicates had not stood for, one at least.
std::uint32_t Westwood::Delivered(std::uint32_t bytes, std::uint32_t segment)
{
    if (bytes == 0) {
        m_counted += segment;
        return segment;
    }
    if (bytes <= segment)
        return bytes;
    if (m_counted >= bytes) {
        m_counted -= bytes;
        return segment;
    }
    const std::uint32_t delivered = bytes - m_counted;
    m_counted = 0;
    return delivered;
}

std::uint32_t Westwood::GetSsThresh(ns3::Ptr<const ns3::TcpSocketState> state, std::uint32_t)
{
    const std::uint32_t least = 2 * state->m_segmentSize;
    if (!m_started)
        return least;
    FilterSilence();
    return std::max(least,
                    static_cast<std::uint32_t>(m_estimate_Bps * m_least_round_trip.GetSeconds()));
}

ns3::Ptr<ns3::TcpCongestionOps> Westwood::Fork()
{
    return ns3::CopyObject<Westwood>(this);
}

ns3::TypeId WestwoodRecovery::GetTypeId()
{
    static const ns3::TypeId type = ns3::TypeId("replicate::WestwoodRecovery")
                                        .SetParent<ns3::TcpClassicRecovery>()
                                        .AddConstructor<WestwoodRecovery>();
    return type;
}

void WestwoodRecovery::EnterRecovery(ns3::Ptr<ns3::TcpSocketState> state, std::uint32_t duplicates,
                                     std::uint32_t outstanding, std::uint32_t delivered)
{
    m_window = std::min(state->m_cWnd.Get(), state->m_ssThresh.Get());
    ns3::TcpClassicRecovery::EnterRecovery(state, duplicates, outstanding, delivered);
    state->m_cWnd = m_window;
    state->m_cWndInfl = m_window + duplicates * state->m_segmentSize;
}

void WestwoodRecovery::ExitRecovery(ns3::Ptr<ns3::TcpSocketState> state)
{
    state->m_cWnd = m_window;
    state->m_cWndInfl = m_window;
}

ns3::Ptr<ns3::TcpRecoveryOps> WestwoodRecovery::Fork()
{
    return ns3::CopyObject<WestwoodRecovery>(this);
}

} // namespace replicate
