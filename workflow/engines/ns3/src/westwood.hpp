/// TCP Westwood (Casetti, Gerla, Mascolo, Sanadidi, Wang: Wireless Networks 8, 2002; first in
/// Mascolo et al., MobiCom 2001).
#pragma once

#include <ns3/nstime.h>
#include <ns3/tcp-congestion-ops.h>
#include <ns3/tcp-recovery-ops.h>

#include <cstdint>

namespace replicate
{

/// NewReno's growth. After a loss ssthresh is the bandwidth estimate times the least round trip,
/// two segments at least.
///
/// Every acknowledgement gives a sample: the bytes that it says were delivered, over the time since
/// the one before. A first-order low-pass filter in Tustin's discrete form smooths the samples; its
/// gain follows their spacing, and half a time constant without one counts as a sample of zero.
class Westwood : public ns3::TcpNewReno
{
public:
    static ns3::TypeId GetTypeId();

    /// An acknowledgement covers so many more bytes; of a duplicate these are none.
    void Acknowledged(std::uint32_t bytes, std::uint32_t segment, ns3::Time round_trip);

    std::uint32_t GetSsThresh(ns3::Ptr<const ns3::TcpSocketState> state,
                              std::uint32_t flight) override;
    ns3::Ptr<ns3::TcpCongestionOps> Fork() override;
    std::string GetName() const override { return "Westwood"; }

private:
    std::uint32_t Delivered(std::uint32_t bytes, std::uint32_t segment);

    void Filter(double sample_Bps, double interval_s);
    void FilterSilence();

    double m_estimate_Bps = 0;
    double m_sample_Bps = 0;
    ns3::Time m_least_round_trip = ns3::Time::Max();
    bool m_started = false;
    ns3::Time m_acknowledged;      ///< time of the last acknowledgement
    ns3::Time m_sampled;           ///< time of the last sample, of zero or not
    std::uint32_t m_unsampled = 0; ///< bytes delivered in the same instant as m_acknowledged
    std::uint32_t m_counted = 0;   ///< bytes that duplicates said were delivered
};

/// Classic recovery, but the window never grows by a loss: cwnd is the smaller of itself and
/// ssthresh, in recovery and after it.
class WestwoodRecovery : public ns3::TcpClassicRecovery
{
public:
    static ns3::TypeId GetTypeId();
    void EnterRecovery(ns3::Ptr<ns3::TcpSocketState> state, std::uint32_t duplicates,
                       std::uint32_t outstanding, std::uint32_t delivered) override;
    void ExitRecovery(ns3::Ptr<ns3::TcpSocketState> state) override;
    ns3::Ptr<ns3::TcpRecoveryOps> Fork() override;
    std::string GetName() const override { return "WestwoodRecovery"; }

private:
    std::uint32_t m_window = 0;
};

} // namespace replicate
