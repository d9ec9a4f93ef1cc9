#include "reno_socket.hpp"

#include <ns3/tcp-tx-buffer.h>

#include <algorithm>

namespace replicate
{

NS_OBJECT_ENSURE_REGISTERED(ClassicWindow);
NS_OBJECT_ENSURE_REGISTERED(RenoSocket);

ns3::TypeId ClassicWindow::GetTypeId()
{
    static const ns3::TypeId type = ns3::TypeId("replicate::ClassicWindow")
                                        .SetParent<ns3::TcpNewReno>()
                                        .AddConstructor<ClassicWindow>();
    return type;
}

std::uint32_t ClassicWindow::GetSsThresh(ns3::Ptr<const ns3::TcpSocketState> state,
                                         std::uint32_t flight)
{
    return ns3::TcpNewReno::GetSsThresh(state, std::min(flight, state->m_cWnd.Get()));
}

ns3::Ptr<ns3::TcpCongestionOps> ClassicWindow::Fork()
{
    return ns3::CopyObject<ClassicWindow>(this);
}

ns3::TypeId RenoSocket::GetTypeId()
{
    static const ns3::TypeId type =
        ns3::TypeId("replicate::RenoSocket").SetParent<FlowSocket>().AddConstructor<RenoSocket>();
    return type;
}

bool RenoSocket::InRecovery() const
{
    return m_tcb->m_congState == ns3::TcpSocketState::CA_RECOVERY;
}

void RenoSocket::ProcessAck(const ns3::SequenceNumber32& ack, bool scoreboard_updated,
                            std::uint32_t delivered, const ns3::SequenceNumber32& head,
                            bool has_data)
{
    const bool duplicate = IsDuplicate(ack, head, has_data);
    if (InRecovery() && duplicate)
        m_tcb->m_cWnd += m_tcb->m_segmentSize; // a segment has left the network
    else if (InRecovery() && ack > head)
        LeaveFastRecovery(ack);
    else if (duplicate && IsFastRetransmitDue())
        EnterFastRecovery();
    else
        FlowSocket::ProcessAck(ack, scoreboard_updated, delivered, head, has_data);
}

/// RFC 2581, section 3.2, steps 1 to 3. Only a timeout forbids another fast retransmit in the same
/// window, so echoes are not ignored from here on.
void RenoSocket::EnterFastRecovery()
{
    const std::uint32_t flight = BytesInFlight();
    m_dupAckCount = 0;
    m_txBuffer->ResetRenoSack();
    m_txBuffer->MarkHeadAsLost();
    m_congestionControl->CongestionStateSet(m_tcb, ns3::TcpSocketState::CA_RECOVERY);
    m_tcb->m_congState = ns3::TcpSocketState::CA_RECOVERY;
    m_tcb->m_ssThresh = m_congestionControl->GetSsThresh(m_tcb, flight);
    m_tcb->m_cWnd = m_tcb->m_ssThresh + m_retxThresh * m_tcb->m_segmentSize;
    m_tcb->m_cWndInfl = m_tcb->m_cWnd;
    m_retxEvent.Cancel(); // restarted by the segment sent now, as in BSD and ns-2
    SendDataPacket(m_txBuffer->HeadSequence(), m_tcb->m_segmentSize, true);
}

/// Step 5: deflate. No growth on top: the window is ssthresh when recovery ends.
void RenoSocket::LeaveFastRecovery(ns3::SequenceNumber32 ack)
{
    m_dupAckCount = 0;
    m_tcb->m_lastAckedSeq = ack;
    m_congestionControl->CwndEvent(m_tcb, ns3::TcpSocketState::CA_EVENT_COMPLETE_CWR);
    m_congestionControl->CongestionStateSet(m_tcb, ns3::TcpSocketState::CA_OPEN);
    m_tcb->m_congState = ns3::TcpSocketState::CA_OPEN;
    m_tcb->m_cWnd = m_tcb->m_ssThresh;
    m_tcb->m_cWndInfl = m_tcb->m_cWnd;
    NewAck(ack, true);
}

/// In recovery the inflated window is compared with all that is outstanding (SND.NXT - SND.UNA),
/// since the inflation itself represents the segments that have left the network.
std::uint32_t RenoSocket::AvailableWindow() const
{
    if (!InRecovery())
        return FlowSocket::AvailableWindow();
    const std::uint32_t window = Window();
    const std::uint32_t outstanding = UnAckDataCount();
    return outstanding > window ? 0 : window - outstanding;
}

} // namespace replicate
