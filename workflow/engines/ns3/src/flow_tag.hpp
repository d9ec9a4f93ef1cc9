/// Packet tag put on at IP send: which flow, and when. Spares the hops any parsing of headers.
#pragma once

#include <ns3/tag.h>

#include <cstdint>

namespace replicate
{

class FlowTag : public ns3::Tag
{
public:
    FlowTag() = default;
    FlowTag(std::uint32_t flow, std::int64_t sent_ns) : m_flow(flow), m_sent_ns(sent_ns) {}

    static ns3::TypeId GetTypeId();
    ns3::TypeId GetInstanceTypeId() const override;
    std::uint32_t GetSerializedSize() const override { return 12; }
    void Serialize(ns3::TagBuffer buffer) const override;
    void Deserialize(ns3::TagBuffer buffer) override;
    void Print(std::ostream& os) const override { os << m_flow; }

    std::uint32_t Flow() const { return m_flow; }
    std::int64_t SentNs() const { return m_sent_ns; }

private:
    std::uint32_t m_flow = 0;
    std::int64_t m_sent_ns = 0;
};

} // namespace replicate
