#include "prr.hpp"

#include <algorithm>

namespace replicate
{

void Prr::Begin(std::uint32_t flight, std::uint32_t duplicates)
{
    *this = Prr();
    m_flight = std::max(flight, 1U);
    m_duplicates = duplicates;
}

std::uint32_t Prr::Duplicate(std::uint32_t segment)
{
    m_duplicates += segment;
    return segment;
}

std::uint32_t Prr::Cumulative(std::uint32_t acknowledged)
{
    const std::uint32_t known = std::min(m_duplicates, acknowledged);
    m_duplicates -= known;
    return acknowledged - known;
}

void Prr::Acknowledged(std::uint32_t delivered)
{
    m_delivered_now = delivered;
    m_delivered += delivered;
    m_sent += m_sent_now;
    m_sent_now = 0;
}

std::uint32_t Prr::SendCount(std::uint32_t pipe, std::uint32_t ssthresh,
                             std::uint32_t segment) const
{
    if (pipe > ssthresh) {
        const std::uint64_t target = (m_delivered * ssthresh + m_flight - 1) / m_flight;
        return static_cast<std::uint32_t>(target - std::min(target, m_sent));
    }
    const std::uint64_t behind = m_delivered - std::min(m_delivered, m_sent);
    const std::uint64_t limit = std::max(behind, m_delivered_now) + segment;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(ssthresh - pipe, limit));
}

} // namespace replicate
