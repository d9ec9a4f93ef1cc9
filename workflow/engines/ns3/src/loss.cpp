#include "loss.hpp"

#include "flow_tag.hpp"

#include <ns3/packet.h>
#include <ns3/random-variable-stream.h>

namespace replicate
{
namespace
{

/// Independent loss of every packet, acknowledgements included.
class RandomLoss : public ns3::ErrorModel
{
public:
    RandomLoss(double probability, std::int64_t stream)
        : m_probability(probability), m_uniform(ns3::CreateObject<ns3::UniformRandomVariable>())
    {
        m_uniform->SetStream(stream);
    }

    void Change(double probability) { m_probability = probability; }

private:
    bool DoCorrupt(ns3::Ptr<ns3::Packet>) override { return m_uniform->GetValue() < m_probability; }
    void DoReset() override {}

    double m_probability;
    ns3::Ptr<ns3::UniformRandomVariable> m_uniform;
};

/// Loss of the n-th data packets of one flow.
class ListedLoss : public ns3::ErrorModel
{
public:
    explicit ListedLoss(const LossSpec& spec) : m_flow(spec.flow), m_listed(spec.data_packets) {}

private:
    bool DoCorrupt(ns3::Ptr<ns3::Packet> packet) override
    {
        FlowTag tag;
        if (!packet->PeekPacketTag(tag) || tag.Flow() != m_flow)
            return false;
        ++m_crossed;
        while (m_next < m_listed.size() && m_listed[m_next] < m_crossed)
            ++m_next;
        return m_next < m_listed.size() && m_listed[m_next] == m_crossed;
    }
    void DoReset() override { m_crossed = m_next = 0; }

    std::uint32_t m_flow;
    std::vector<std::uint64_t> m_listed;
    std::uint64_t m_crossed = 0;
    std::size_t m_next = 0;
};

} // namespace

ns3::Ptr<ns3::ErrorModel> MakeLoss(const LossSpec& spec, std::int64_t stream)
{
    if (spec.random)
        return ns3::Create<RandomLoss>(spec.probability, stream);
    return ns3::Create<ListedLoss>(spec);
}

void ChangeLoss(const ns3::Ptr<ns3::ErrorModel>& loss, double probability)
{
    ns3::DynamicCast<RandomLoss>(loss)->Change(probability);
}

} // namespace replicate
