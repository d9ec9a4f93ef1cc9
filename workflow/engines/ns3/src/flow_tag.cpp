#include "flow_tag.hpp"

namespace replicate
{

NS_OBJECT_ENSURE_REGISTERED(FlowTag);

ns3::TypeId FlowTag::GetTypeId()
{
    static const ns3::TypeId type =
        ns3::TypeId("replicate::FlowTag").SetParent<ns3::Tag>().AddConstructor<FlowTag>();
    return type;
}

ns3::TypeId FlowTag::GetInstanceTypeId() const
{
    return GetTypeId();
}

void FlowTag::Serialize(ns3::TagBuffer buffer) const
{
    buffer.WriteU32(m_flow);
    buffer.WriteU64(static_cast<std::uint64_t>(m_sent_ns));
}

void FlowTag::Deserialize(ns3::TagBuffer buffer)
{
    m_flow = buffer.ReadU32();
    m_sent_ns = static_cast<std::int64_t>(buffer.ReadU64());
}

} // namespace replicate
