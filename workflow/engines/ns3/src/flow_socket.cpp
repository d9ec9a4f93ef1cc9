#include "flow_socket.hpp"

#include "errors.hpp"

#include <ns3/boolean.h>
#include <ns3/data-rate.h>
#include <ns3/double.h>
#include <ns3/object-factory.h>
#include <ns3/packet.h>
#include <ns3/simulator.h>
#include <ns3/string.h>
#include <ns3/tcp-bbr.h>
#include <ns3/tcp-congestion-ops.h>
#include <ns3/tcp-cubic.h>
#include <ns3/tcp-header.h>
#include <ns3/tcp-prr-recovery.h>
#include <ns3/tcp-recovery-ops.h>
#include <ns3/tcp-rx-buffer.h>
#include <ns3/tcp-tx-buffer.h>
#include <ns3/uinteger.h>

#include <algorithm>
#include <limits>
#include <map>

namespace replicate
{
namespace
{

/// Largest window that TCP can advertise: 16 bits shifted by 14 (RFC 7323).
constexpr std::uint32_t kLargestWindow = 65535U << 14;
/// Retries without end in practice: a starved flow keeps trying instead of dying.
constexpr std::uint32_t kRetries = 1'000'000'000;
/// ns-3's congestion controls say "infinite" by this or a larger number.
constexpr std::uint32_t kInfiniteSsthresh = 0x7fffffff;
/// Segments that the source keeps ready beyond what the window needs.
constexpr std::uint32_t kReadySegments = 64;
/// Bound on it, so that a huge window does not overflow the buffer's 31 bits.
constexpr std::uint32_t kMostReady = 1U << 28;

/// ns-3 type of a congestion control; Tahoe and Reno share one of ours, in sockets of ours.
std::string CongestionTypeId(const std::string& congestion_control)
{
    static const std::map<std::string, std::string> types = {
        {"bbr", "ns3::TcpBbr"},
        {"bic", "ns3::TcpBic"},
        {"cubic", "ns3::TcpCubic"},
        {"dctcp", "ns3::TcpDctcp"},
        {"highspeed", "ns3::TcpHighSpeed"},
        {"htcp", "ns3::TcpHtcp"},
        {"hybla", "ns3::TcpHybla"},
        {"illinois", "ns3::TcpIllinois"},
        {"ledbat", "ns3::TcpLedbat"},
        {"linuxreno", "ns3::TcpLinuxReno"},
        {"lp", "ns3::TcpLp"},
        {"newreno", "ns3::TcpNewReno"},
        {"reno", "replicate::ClassicWindow"},
        {"scalable", "ns3::TcpScalable"},
        {"tahoe", "replicate::ClassicWindow"},
        {"vegas", "ns3::TcpVegas"},
        {"veno", "ns3::TcpVeno"},
        {"westwood", "replicate::Westwood"},
        {"westwood_plus", kWestwoodPlusIsMode ? "ns3::TcpWestwood" : "ns3::TcpWestwoodPlus"},
        {"yeah", "ns3::TcpYeah"},
    };
    const auto found = types.find(congestion_control);
    if (found == types.end())
        throw InputError("congestion_control: ns3 has no '" + congestion_control + "'");
    return found->second;
}

ns3::Ptr<ns3::TcpCongestionOps> MakeCongestionControl(const FlowSpec& spec)
{
    ns3::ObjectFactory factory(CongestionTypeId(spec.congestion_control));
    if (spec.congestion_control == "cubic") {
        factory.Set("FastConvergence", ns3::BooleanValue(spec.cubic_fast_convergence));
        if constexpr (kCubicHasFriendliness)
            factory.Set("TcpFriendliness", ns3::BooleanValue(spec.cubic_tcp_friendliness));
        else if (spec.cubic_tcp_friendliness) // an input file does not say for which release it is
            throw InputError(std::string("cubic_tcp_friendliness: cubic of ns-3 ") +
                             kSimulatorVersion + " has none");
        factory.Set("HyStart", ns3::BooleanValue(spec.cubic_hystart));
        factory.Set("Beta", ns3::DoubleValue(spec.cubic_beta));
        factory.Set("C", ns3::DoubleValue(0.4));
    } else if (spec.congestion_control == "westwood_plus" && kWestwoodPlusIsMode) {
        factory.Set("ProtocolType", ns3::StringValue("WestwoodPlus"));
    } else if (spec.congestion_control == "vegas") {
        factory.Set("Alpha", ns3::UintegerValue(spec.vegas_alpha_packets));
        factory.Set("Beta", ns3::UintegerValue(spec.vegas_beta_packets));
        factory.Set("Gamma", ns3::UintegerValue(spec.vegas_gamma_packets));
    }
    return factory.Create<ns3::TcpCongestionOps>();
}

ns3::Ptr<ns3::TcpRecoveryOps> MakeRecovery(const FlowSpec& spec)
{
    if (spec.congestion_control == "westwood")
        return ns3::CreateObject<WestwoodRecovery>();
    if (spec.recovery == Recovery::Ns3Prr)
        return ns3::CreateObject<ns3::TcpPrrRecovery>();
    return ns3::CreateObject<ns3::TcpClassicRecovery>();
}

} // namespace

NS_OBJECT_ENSURE_REGISTERED(RecordingRtt);

ns3::TypeId RecordingRtt::GetTypeId()
{
    static const ns3::TypeId type = ns3::TypeId("replicate::RecordingRtt")
                                        .SetParent<ns3::RttMeanDeviation>()
                                        .AddConstructor<RecordingRtt>();
    return type;
}

void RecordingRtt::Record(Metrics* metrics, std::uint32_t flow)
{
    m_metrics = metrics;
    m_flow = flow;
}

void RecordingRtt::Measurement(ns3::Time sample)
{
    if (m_metrics)
        m_metrics->RttSample(m_flow, sample.GetNanoSeconds());
    ns3::RttMeanDeviation::Measurement(sample);
}

NS_OBJECT_ENSURE_REGISTERED(FlowSocket);

ns3::TypeId FlowSocket::GetTypeId()
{
    static const ns3::TypeId type = ns3::TypeId("replicate::FlowSocket")
                                        .SetParent<ns3::TcpSocketBase>()
                                        .AddConstructor<FlowSocket>();
    return type;
}

void FlowSocket::Configure(const FlowSpec& spec)
{
    SetSegSize(spec.segment_bytes);
    SetInitialCwnd(spec.initial_window_segments);
    SetInitialSSThresh(
        spec.initial_ssthresh_bytes.value_or(std::numeric_limits<std::uint32_t>::max()));
    SetSndBufSize(std::numeric_limits<std::int32_t>::max());
    m_unsupplied = spec.stop_after_bytes.value_or(std::numeric_limits<std::uint64_t>::max());
    m_window_cap = spec.maximum_window_bytes.value_or(0);
    // Without scaling the advertised window is exact to the byte; with it, only to a multiple of
    // 2^shift, so the receiver then has room to spare and the sender applies the cap.
    SetRcvBufSize(m_window_cap != 0 && m_window_cap <= 65535 ? m_window_cap : kLargestWindow);
    SetDelAckMaxCount(spec.delayed_ack_segments);
    SetDelAckTimeout(ns3::NanoSeconds(spec.delayed_ack_timeout_ns));
    SetConnTimeout(ns3::NanoSeconds(spec.initial_rto_ns));
    SetSynRetries(30);
    SetDataRetries(kRetries);
    SetTcpNoDelay(true); // Nagle off
    SetMinRto(ns3::NanoSeconds(spec.minimum_rto_ns));
    SetClockGranularity(ns3::NanoSeconds(spec.clock_granularity_ns));
    SetRetxThresh(3);
    m_limitedTx = spec.limited_transmit;
    m_winScalingEnabled = true;
    m_timestampEnabled = spec.timestamps;
    SetAttribute("Sack", ns3::BooleanValue(spec.sack));
    SetUseEcn(spec.ecn ? ns3::TcpSocketState::On : ns3::TcpSocketState::Off);
    SetPacingStatus(false); // BBR turns it on for itself
    m_tcb->m_maxPacingRate = ns3::DataRate(1'000'000'000'000);
    m_rto = ns3::NanoSeconds(spec.initial_rto_ns);
    SetCongestionControlAlgorithm(MakeCongestionControl(spec));
    SetRecoveryAlgorithm(MakeRecovery(spec));
    if (spec.recovery == Recovery::Prr && !m_congestionControl->HasCongControl())
        m_prr.emplace();
    auto rtt = ns3::CreateObject<RecordingRtt>();
    rtt->SetAttribute("InitialEstimation", ns3::TimeValue(ns3::NanoSeconds(spec.initial_rto_ns)));
    rtt->SetAttribute("Alpha", ns3::DoubleValue(0.125)); // RFC 6298
    rtt->SetAttribute("Beta", ns3::DoubleValue(0.25));
    rtt->Reset();
    SetRtt(rtt);
}

void FlowSocket::BecomeSender(Metrics* metrics, Trace* trace, std::uint32_t flow)
{
    m_metrics = metrics;
    m_trace = trace->IsOpen() ? trace : nullptr;
    m_flow = flow;
    ns3::DynamicCast<RecordingRtt>(m_rtt)->Record(metrics, flow);
    m_westwood = ns3::DynamicCast<Westwood>(m_congestionControl);
    if (auto bbr = ns3::DynamicCast<ns3::TcpBbr>(m_congestionControl))
        bbr->SetStream(1'000'000 + flow);
    m_txTrace.ConnectWithoutContext(ns3::MakeCallback(&FlowSocket::SegmentSent, this));
}

void FlowSocket::Begin()
{
    m_begun = true;
    Refill();
    if (m_connected)
        SendPendingData(true);
}

/// Data is put into the buffer directly and in large pieces: Send() would cost an event each time.
/// Packets of zeros take no memory and are split for free. Every acknowledgement may let new data
/// go, in SACK recovery without freeing any of the buffer.
void FlowSocket::Refill()
{
    const std::uint32_t unsent = m_txBuffer->Size() - UnAckDataCount();
    const std::uint32_t segments =
        std::min(Window(), kMostReady) / m_tcb->m_segmentSize + kReadySegments;
    if (unsent >= segments * m_tcb->m_segmentSize || m_unsupplied == 0)
        return;
    const auto bytes = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(segments * m_tcb->m_segmentSize, m_unsupplied));
    m_unsupplied -= bytes;
    m_txBuffer->Add(ns3::Create<ns3::Packet>(bytes));
}

void FlowSocket::Stop()
{
    m_stopped = true;
    CancelAllTimers();
}

std::uint64_t FlowSocket::TakeReceived()
{
    const auto packet = m_tcb->m_rxBuffer->Extract(std::numeric_limits<std::uint32_t>::max());
    return packet ? packet->GetSize() : 0;
}

std::optional<std::uint32_t> FlowSocket::Ssthresh() const
{
    const std::uint32_t ssthresh = m_tcb->m_ssThresh;
    return ssthresh < kInfiniteSsthresh ? std::optional(ssthresh) : std::nullopt;
}

ns3::Ptr<ns3::TcpSocketBase> FlowSocket::Fork()
{
    return ns3::CopyObject<FlowSocket>(this);
}

void FlowSocket::DoForwardUp(ns3::Ptr<ns3::Packet> packet, const ns3::Address& from,
                             const ns3::Address& to)
{
    if (!m_stopped)
        ns3::TcpSocketBase::DoForwardUp(packet, from, to);
}

void FlowSocket::ReceivedAck(ns3::Ptr<ns3::Packet> packet, const ns3::TcpHeader& header)
{
    if (m_window_cap != 0)
        m_rWnd = std::min(m_rWnd.Get(), m_window_cap);
    m_rWnd -= m_rWnd % m_tcb->m_segmentSize; // only whole segments are ever sent
    if (m_begun)
        Refill();
    if (m_trace)
        TraceEvent("ack", header.GetAckNumber());
    ns3::TcpSocketBase::ReceivedAck(packet, header);
}

void FlowSocket::ReTxTimeout()
{
    if (m_metrics && m_state == ESTABLISHED && UnAckDataCount() > 0) {
        ++m_metrics->Flow(m_flow).timeouts;
        if (m_trace)
            TraceEvent("timeout", m_txBuffer->HeadSequence());
    }
    IgnoreEchoes();
    ns3::TcpSocketBase::ReTxTimeout();
}

/// After a timeout all is sent again, and what had arrived after all is acknowledged by duplicates.
/// RFC 6582, section 3.2, step 2 (ns-2: `bug_fix_`): they say nothing of a loss unless the
/// acknowledgement covers more than `recover`. ns-3 also accepts one that covers just `recover`,
/// and without SACK then sends whole windows again that were never lost.
void FlowSocket::ProcessAck(const ns3::SequenceNumber32& ack, bool scoreboard_updated,
                            std::uint32_t delivered, const ns3::SequenceNumber32& head,
                            bool has_data)
{
    if (m_westwood && (ack > head || IsDuplicate(ack, head, has_data)))
        m_westwood->Acknowledged(ack - head, m_tcb->m_segmentSize, m_tcb->m_lastRtt);
    if (m_ignoring_echoes && ack > m_recover)
        m_ignoring_echoes = false;
    if (m_ignoring_echoes && !m_sackEnabled && IsDuplicate(ack, head, has_data))
        return;
    // ns-3 counts only what that acknowledgement covers beyond `recover`, often nothing.
    const bool grow = GrowsOnLastAckOfLoss() && ack > head && ack >= m_recover &&
                      ack < m_recover + m_tcb->m_segmentSize &&
                      m_tcb->m_congState == ns3::TcpSocketState::CA_LOSS;
    if (m_prr) {
        const std::uint32_t segment = m_tcb->m_segmentSize;
        if (m_tcb->m_congState != ns3::TcpSocketState::CA_RECOVERY)
            m_prr->Begin(UnAckDataCount(), m_dupAckCount * segment);
        m_prr->Acknowledged(m_sackEnabled                      ? delivered
                            : IsDuplicate(ack, head, has_data) ? m_prr->Duplicate(segment)
                                                               : m_prr->Cumulative(ack - head));
    }
    SocketBase::ProcessAck(ack, scoreboard_updated, delivered, head, has_data);
    if (m_prr && m_tcb->m_congState == ns3::TcpSocketState::CA_RECOVERY)
        ReduceProportionally();
    if (grow)
        m_congestionControl->IncreaseWindow(m_tcb, 1);
}

/// The window in recovery: what is out, and what this acknowledgement lets go. ns-3 may have sent a
/// segment already; SendPendingData, which follows, sends the rest.
void FlowSocket::ReduceProportionally()
{
    const std::uint32_t now = BytesInFlight();
    const std::uint32_t pipe = now - std::min(now, m_prr->SentNow());
    m_tcb->m_cWnd = pipe + m_prr->SendCount(pipe, m_tcb->m_ssThresh, m_tcb->m_segmentSize);
    m_tcb->m_cWndInfl = m_tcb->m_cWnd;
}

/// With SACK, ns-3 always lets the first two duplicates send new data, as RFC 6675 permits; where
/// the scenario has limited transmit off, count those sacked bytes as still in flight.
std::uint32_t FlowSocket::AvailableWindow() const
{
    if (!m_sackEnabled || m_limitedTx || m_tcb->m_congState != ns3::TcpSocketState::CA_DISORDER)
        return SocketBase::AvailableWindow();
    const std::uint32_t in_flight = BytesInFlight() + m_txBuffer->GetSacked();
    return in_flight > Window() ? 0 : Window() - in_flight;
}

bool FlowSocket::IsDuplicate(ns3::SequenceNumber32 ack, ns3::SequenceNumber32 head,
                             bool has_data) const
{
    return ack == head && ack < m_tcb->m_highTxMark && !has_data;
}

bool FlowSocket::IsFastRetransmitDue() const
{
    return m_tcb->m_congState != ns3::TcpSocketState::CA_LOSS && !m_ignoring_echoes &&
           m_dupAckCount + 1 == m_retxThresh;
}

void FlowSocket::SegmentSent(ns3::Ptr<const ns3::Packet> packet, const ns3::TcpHeader& header,
                             ns3::Ptr<const ns3::TcpSocketBase>)
{
    if (packet->GetSize() == 0)
        return;
    m_metrics->Sent(m_flow, packet);
    if (m_prr)
        m_prr->Sent(packet->GetSize());
    const bool again = header.GetSequenceNumber() < m_tcb->m_highTxMark;
    if (again) {
        ++m_metrics->Flow(m_flow).retransmissions;
        ++m_metrics->Flow(m_flow).interval.retransmissions;
    }
    if (m_trace)
        TraceEvent(again ? "retransmit" : "send", header.GetSequenceNumber());
}

/// Sequence numbers are reported as bytes from the start of the data (the SYN takes number 0).
void FlowSocket::TraceEvent(const char* event, ns3::SequenceNumber32 sequence) const
{
    m_trace->Add(ns3::Simulator::Now().GetNanoSeconds(), m_flow, event, sequence.GetValue() - 1,
                 Cwnd(), Ssthresh());
}

} // namespace replicate
