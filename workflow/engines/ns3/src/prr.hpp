/// Proportional Rate Reduction (RFC 6937) with its slow-start reduction bound.
#pragma once

#include <cstdint>

namespace replicate
{

/// Arithmetic of RFC 6937, section 3, in bytes. ns-3.44's own PRR is used only on request:
/// with SACK it takes a segment too many as delivered for each duplicate, it measures the reduction
/// by the pipe instead of the flight size, and it multiplies two windows in 32 bits, which wraps
/// from 64 KiB on. So it sends more in recovery than the bottleneck drains, and loses again at
/// once.
class Prr
{
public:
    /// Recovery may begin with the acknowledgement that comes now. `flight` is SND.NXT less SND.UNA
    /// (RecoverFS); without SACK the duplicates that came before are of so many bytes.
    void Begin(std::uint32_t flight, std::uint32_t duplicates);

    /// Bytes that a duplicate says were delivered, without SACK: a segment.
    std::uint32_t Duplicate(std::uint32_t segment);
    /// Bytes that a new acknowledgement says were delivered, without SACK: what its duplicates had
    /// not said before.
    std::uint32_t Cumulative(std::uint32_t acknowledged);

    /// An acknowledgement reports so many more bytes as delivered (DeliveredData).
    void Acknowledged(std::uint32_t delivered);

    /// Bytes went out, whether new or again.
    void Sent(std::uint32_t bytes) { m_sent_now += bytes; }
    /// Bytes sent since the last acknowledgement came.
    std::uint32_t SentNow() const { return m_sent_now; }

    /// What this acknowledgement lets go (sndcnt); `pipe` is from before anything was sent for it.
    std::uint32_t SendCount(std::uint32_t pipe, std::uint32_t ssthresh,
                            std::uint32_t segment) const;

private:
    std::uint64_t m_flight = 1;
    std::uint64_t m_delivered = 0;
    std::uint64_t m_delivered_now = 0;
    std::uint64_t m_sent = 0; ///< before the last acknowledgement
    std::uint32_t m_sent_now = 0;
    std::uint32_t m_duplicates = 0;
};

} // namespace replicate
