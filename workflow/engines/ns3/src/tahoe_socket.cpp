#include "tahoe_socket.hpp"

#include <ns3/tcp-congestion-ops.h>
#include <ns3/tcp-tx-buffer.h>

namespace replicate
{

NS_OBJECT_ENSURE_REGISTERED(TahoeSocket);

ns3::TypeId TahoeSocket::GetTypeId()
{
    static const ns3::TypeId type =
        ns3::TypeId("replicate::TahoeSocket").SetParent<FlowSocket>().AddConstructor<TahoeSocket>();
    return type;
}

void TahoeSocket::ProcessAck(const ns3::SequenceNumber32& ack, bool scoreboard_updated,
                             std::uint32_t delivered, const ns3::SequenceNumber32& head,
                             bool has_data)
{
    if (IsDuplicate(ack, head, has_data) && IsFastRetransmitDue())
        FastRetransmit();
    else
        FlowSocket::ProcessAck(ack, scoreboard_updated, delivered, head, has_data);
}

/// What ns-3 does at a timeout, from the state of the buffers to CA_LOSS, in which it slow-starts
/// through everything marked lost; SendPendingData, which follows every acknowledgement, then
/// sends the first segment and with it restarts the timer.
void TahoeSocket::FastRetransmit()
{
    const std::uint32_t flight = BytesInFlight();
    m_dupAckCount = 0;
    m_txBuffer->ResetRenoSack();
    m_txBuffer->SetSentListLost(true);
    m_recover = m_tcb->m_highTxMark;
    m_recoverActive = true;
    IgnoreEchoes();
    m_history.clear(); // Karn: no sample from what is sent again
    m_tcb->m_ssThresh = m_congestionControl->GetSsThresh(m_tcb, flight);
    m_congestionControl->CongestionStateSet(m_tcb, ns3::TcpSocketState::CA_LOSS);
    m_tcb->m_congState = ns3::TcpSocketState::CA_LOSS;
    m_tcb->m_cWnd = m_tcb->m_segmentSize;
    m_tcb->m_cWndInfl = m_tcb->m_cWnd;
    m_retxEvent.Cancel();
}

} // namespace replicate
