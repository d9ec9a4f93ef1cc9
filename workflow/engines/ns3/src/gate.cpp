#include "gate.hpp"

#include <ns3/nstime.h>
#include <ns3/simulator.h>

#include <algorithm>

namespace replicate
{
namespace
{

/// The deepest debt (`mbuffer` of sch_htb.c).
constexpr std::int64_t kMostDebtNs = 60'000'000'000;

/// Bytes that may leave at one opportunity, and the rate at which they then pass: at once.
constexpr std::uint32_t kOpportunityBytes = 1500;
constexpr std::uint64_t kAtOnceBps = 1'000'000'000'000'000;

std::int64_t Nanoseconds(std::uint64_t bytes, std::uint64_t rate_bps)
{
    return static_cast<std::int64_t>(8e9L * bytes / rate_bps);
}

/// A discipline before which one queue is.
class Gate : public ns3::QueueDisc
{
public:
    explicit Gate(const ns3::Ptr<ns3::QueueDisc>& queue)
        : QueueDisc(ns3::QueueDiscSizePolicy::SINGLE_CHILD_QUEUE_DISC)
    {
        auto only = ns3::CreateObject<ns3::QueueDiscClass>();
        only->SetQueueDisc(queue);
        AddQueueDiscClass(only);
    }

protected:
    ns3::Ptr<ns3::QueueDisc> Child() const { return GetQueueDiscClass(0)->GetQueueDisc(); }

private:
    bool DoEnqueue(ns3::Ptr<ns3::QueueDiscItem> item) override { return Child()->Enqueue(item); }
    bool CheckConfig() override { return true; }
    void InitializeParams() override {}
};

/// A class of Linux's HTB (sch_htb.c: htb_class_mode, htb_accnt_tokens): a packet goes while there
/// is no debt, and is paid for afterwards. Tokens are counted in the time that they take to come.
class TokenBucket : public Gate
{
public:
    TokenBucket(const LinkSpec& link, const ShaperSpec& shaper,
                const ns3::Ptr<ns3::QueueDisc>& queue)
        : Gate(queue), m_rate_bps(link.rate_bps), m_frame_bytes(link.frame_bytes),
          m_most_ns(Nanoseconds(shaper.burst_bytes, m_rate_bps)), m_tokens_ns(m_most_ns)
    {
    }

private:
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

/// A link of Mahimahi (link_queue.cc): at each opportunity bytes of the queue leave, packet by
/// packet. A packet goes with its last byte; an opportunity's bytes that find no packet are lost.
class Opportunities : public Gate
{
public:
    Opportunities(const std::vector<std::uint64_t>& times_ms, const ns3::Ptr<ns3::QueueDisc>& queue)
        : Gate(queue), m_times_ms(times_ms)
    {
        Wait();
    }

private:
    ns3::Ptr<ns3::QueueDiscItem> DoDequeue() override
    {
        const bool may_send = m_bytes > 0 && Child()->GetNPackets() > 0;
        const auto packet = may_send ? Child()->Peek() : nullptr;
        if (!packet)
            return nullptr;
        const auto rest = packet->GetSize() - m_sent_bytes;
        if (rest > m_bytes) {
            m_sent_bytes += m_bytes;
            m_bytes = 0;
            return nullptr;
        }
        m_bytes -= rest;
        m_sent_bytes = 0;
        return Child()->Dequeue();
    }

    void Opportunity()
    {
        m_bytes = kOpportunityBytes;
        Run();
        m_bytes = 0;
        if (++m_next == m_times_ms.size()) {
            m_next = 0;
            m_round_ms += m_times_ms.back();
        }
        Wait();
    }

    void Wait()
    {
        const auto at = ns3::MilliSeconds(m_round_ms + m_times_ms[m_next]);
        ns3::Simulator::Schedule(at - ns3::Simulator::Now(), &Opportunities::Opportunity, this);
    }

    std::vector<std::uint64_t> m_times_ms;
    std::size_t m_next = 0;
    std::uint64_t m_round_ms = 0;   ///< when this round of the series began
    std::uint32_t m_bytes = 0;      ///< that may still leave at this opportunity
    std::uint32_t m_sent_bytes = 0; ///< of the first packet in the queue
};

} // namespace

std::uint64_t LineRate(const LinkSpec& link, int direction)
{
    if (!link.opportunities_ms[direction].empty())
        return kAtOnceBps;
    const auto& shaper = link.shaper[direction];
    return shaper ? shaper->line_rate_bps : link.rate_bps;
}

bool HasGate(const LinkSpec& link, int direction)
{
    return link.shaper[direction] || !link.opportunities_ms[direction].empty();
}

ns3::Ptr<ns3::QueueDisc> MakeGate(const LinkSpec& link, int direction,
                                  ns3::Ptr<ns3::QueueDisc> queue)
{
    if (link.shaper[direction])
        return ns3::CreateObject<TokenBucket>(link, *link.shaper[direction], queue);
    return ns3::CreateObject<Opportunities>(link.opportunities_ms[direction], queue);
}

} // namespace replicate
