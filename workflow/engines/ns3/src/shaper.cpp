#include "shaper.hpp"

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include <algorithm>

namespace replicate
{
namespace
{

/// The deepest debt (`mbuffer` of sch_htb.c).
constexpr std::int64_t kMostDebtNs = 60'000'000'000;

std::int64_t Nanoseconds(std::uint64_t bytes, std::uint64_t rate_bps)
{
    return static_cast<std::int64_t>(8e9L * bytes / rate_bps);
}

/// A class of Linux's HTB (sch_htb.c: htb_class_mode, htb_accnt_tokens): a packet goes while there
/// is no debt, and is paid for afterwards. Tokens are counted in the time that they take to come.
class TokenBucket : public ns3::QueueDisc
{
public:
    TokenBucket(const LinkSpec& link, const ShaperSpec& shaper)
        : QueueDisc(ns3::QueueDiscSizePolicy::SINGLE_CHILD_QUEUE_DISC), m_rate_bps(link.rate_bps),
          m_frame_bytes(link.frame_bytes), m_most_ns(Nanoseconds(shaper.burst_bytes, m_rate_bps)),
          m_tokens_ns(m_most_ns)
    {
    }

private:
    bool DoEnqueue(ns3::Ptr<ns3::QueueDiscItem> item) override { return Child()->Enqueue(item); }

    ns3::Ptr<ns3::QueueDiscItem> DoDequeue() override
    {
        if (Child()->GetNPackets() == 0)
            return nullptr;
        const auto now = ns3::Simulator::Now().GetNanoSeconds();
        const auto tokens = std::min(m_most_ns, m_tokens_ns + now - m_paid_ns);
        if (tokens < 0) {
            WakeAt(now - tokens);
            return nullptr;
        }
        auto item = Child()->Dequeue();
        if (item) {
            const auto price = Nanoseconds(item->GetSize() + m_frame_bytes, m_rate_bps);
            m_tokens_ns = std::max(tokens - price, 1 - kMostDebtNs);
            m_paid_ns = now;
        }
        return item;
    }

    bool CheckConfig() override { return GetNQueueDiscClasses() == 1; }
    void InitializeParams() override {}

    ns3::Ptr<ns3::QueueDisc> Child() const { return GetQueueDiscClass(0)->GetQueueDisc(); }

    void WakeAt(std::int64_t at_ns)
    {
        const auto now = ns3::Simulator::Now().GetNanoSeconds();
        if (m_wake_ns > now)
            return;
        m_wake_ns = at_ns;
        ns3::Simulator::Schedule(ns3::NanoSeconds(at_ns - now), &ns3::QueueDisc::Run, this);
    }

    std::uint64_t m_rate_bps;
    std::uint32_t m_frame_bytes;
    std::int64_t m_most_ns;
    std::int64_t m_tokens_ns;
    std::int64_t m_paid_ns = 0; ///< when the tokens were counted
    std::int64_t m_wake_ns = 0;
};

} // namespace

std::uint64_t LineRate(const LinkSpec& link, int direction)
{
    const auto& shaper = link.shaper[direction];
    return shaper ? shaper->line_rate_bps : link.rate_bps;
}

ns3::Ptr<ns3::QueueDisc> MakeShaper(const LinkSpec& link, int direction,
                                    ns3::Ptr<ns3::QueueDisc> queue)
{
    auto bucket = ns3::CreateObject<TokenBucket>(link, *link.shaper[direction]);
    auto only = ns3::CreateObject<ns3::QueueDiscClass>();
    only->SetQueueDisc(queue);
    bucket->AddQueueDiscClass(only);
    return bucket;
}

} // namespace replicate
