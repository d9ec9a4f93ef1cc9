/// A plain ns-3 program, as its own examples are: one TCP flow over one link, helpers only.
///
///   s0 ---- rate, delay ---- d0        a case chooses the queue of s0's device
///
/// usage: plain --name=value... --ns3::TYPE::ATTRIBUTE=DEFAULT...; it prints
///   TIME_NS send|ack SEQUENCE CWND SSTHRESH  a segment leaves the sender's TCP, an ACK comes to it
///   received PACKETS                         with data, to d0's IP
///   dropped PACKETS                          by s0's queues, or lost on the way to d0
/// usage: plain --defaults TYPE...            prints TYPE::ATTRIBUTE DEFAULT of each type instead
#include <ns3/bulk-send-application.h>
#include <ns3/bulk-send-helper.h>
#include <ns3/command-line.h>
#include <ns3/error-model.h>
#include <ns3/internet-stack-helper.h>
#include <ns3/ipv4-address-helper.h>
#include <ns3/ipv4-l3-protocol.h>
#include <ns3/packet-sink-helper.h>
#include <ns3/pie-queue-disc.h>
#include <ns3/point-to-point-helper.h>
#include <ns3/point-to-point-net-device.h>
#include <ns3/pointer.h>
#include <ns3/red-queue-disc.h>
#include <ns3/rng-seed-manager.h>
#include <ns3/simulator.h>
#include <ns3/string.h>
#include <ns3/tcp-header.h>
#include <ns3/tcp-socket-base.h>
#include <ns3/traffic-control-helper.h>
#include <ns3/traffic-control-layer.h>
#include <ns3/uinteger.h>

#include <iostream>
#include <sstream>

using namespace ns3;

namespace
{

uint32_t g_cwnd, g_ssthresh, g_received, g_dropped;

void Print(const char* event, SequenceNumber32 sequence)
{
    std::cout << Simulator::Now().GetNanoSeconds() << ' ' << event << ' ' << sequence.GetValue() - 1
              << ' ' << g_cwnd << ' ' << g_ssthresh << '\n';
}

void Sent(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
{
    if (packet->GetSize() > 0)
        Print("send", header.GetSequenceNumber());
}

void Acknowledged(Ptr<const Packet>, const TcpHeader& header, Ptr<const TcpSocketBase>)
{
    if (!(header.GetFlags() & TcpHeader::SYN))
        Print("ack", header.GetAckNumber());
}

void Changed(uint32_t* value, uint32_t, uint32_t now)
{
    *value = now;
}

/// The socket is there once its application has started.
void Watch(Ptr<Application> application)
{
    auto socket = DynamicCast<BulkSendApplication>(application)->GetSocket();
    UintegerValue segments, bytes, ssthresh;
    socket->GetAttribute("InitialCwnd", segments);
    socket->GetAttribute("SegmentSize", bytes);
    socket->GetAttribute("InitialSlowStartThreshold", ssthresh);
    g_cwnd = segments.Get() * bytes.Get();
    g_ssthresh = ssthresh.Get();
    const auto connect = [&](const char* name, auto callback) {
        socket->TraceConnectWithoutContext(name, callback);
    };
    connect("CongestionWindow", MakeBoundCallback(&Changed, &g_cwnd));
    connect("SlowStartThreshold", MakeBoundCallback(&Changed, &g_ssthresh));
    connect("Tx", MakeCallback(&Sent));
    connect("Rx", MakeCallback(&Acknowledged));
}

void Delivered(const Ipv4Header&, Ptr<const Packet> packet, uint32_t)
{
    TcpHeader tcp;
    packet->PeekHeader(tcp);
    g_received += packet->GetSize() > tcp.GetSerializedSize();
}

void Dropped(Ptr<const Packet>)
{
    ++g_dropped;
}

void DroppedByDisc(Ptr<const QueueDiscItem>)
{
    ++g_dropped;
}

int Defaults(int count, char** types)
{
    for (int i = 0; i < count; ++i) {
        const auto type = TypeId::LookupByName(types[i]);
        for (std::size_t k = 0; k < type.GetAttributeN(); ++k) {
            const auto attribute = type.GetAttribute(k);
            std::cout << types[i] << "::" << attribute.name << ' '
                      << attribute.initialValue->SerializeToString(attribute.checker) << '\n';
        }
    }
    return 0;
}

/// With a discipline, it is s0's; without, the device's queue is all there is.
void InstallQueue(const std::string& disc, const NetDeviceContainer& devices)
{
    TrafficControlHelper control;
    control.Uninstall(devices);
    if (disc.empty())
        return;
    control.SetRootQueueDisc(disc);
    auto installed = control.Install(devices.Get(0)).Get(0);
    installed->TraceConnectWithoutContext("Drop", MakeCallback(&DroppedByDisc));
    if (auto red = DynamicCast<RedQueueDisc>(installed))
        red->AssignStreams(1);
    if (auto pie = DynamicCast<PieQueueDisc>(installed))
        pie->AssignStreams(1);
}

void Lose(const std::string& losses, Ptr<NetDevice> device)
{
    std::list<uint32_t> packets;
    std::istringstream words(losses);
    for (std::string word; std::getline(words, word, ',');)
        packets.push_back(std::stoul(word));
    auto model = CreateObject<ReceiveListErrorModel>();
    model->SetList(packets);
    device->SetAttribute("ReceiveErrorModel", PointerValue(model));
    device->TraceConnectWithoutContext("PhyRxDrop", MakeCallback(&Dropped));
}

} // namespace

int main(int argc, char** argv)
{
    if (argc > 1 && std::string(argv[1]) == "--defaults")
        return Defaults(argc - 2, argv + 2);
    std::string rate, delay, queue, disc, losses;
    double duration_s = 0;
    CommandLine command;
    command.AddValue("rate", "of the link", rate);
    command.AddValue("delay", "of the link", delay);
    command.AddValue("queue", "size of s0's device queue", queue);
    command.AddValue("disc", "type of s0's queue discipline, if any", disc);
    command.AddValue("losses", "packets lost on arrival at d0, from 0, with commas", losses);
    command.AddValue("duration", "in seconds", duration_s);
    command.Parse(argc, argv);
    RngSeedManager::SetSeed(1);

    NodeContainer nodes(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", StringValue(delay));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1000p"));
    const auto devices = link.Install(nodes);
    const auto device = DynamicCast<PointToPointNetDevice>(devices.Get(0));
    device->GetQueue()->SetAttribute("MaxSize", StringValue(queue));
    device->GetQueue()->TraceConnectWithoutContext("Drop", MakeCallback(&Dropped));
    InternetStackHelper internet;
    internet.Install(nodes);
    Ipv4AddressHelper address("10.1.1.0", "255.255.255.0");
    const auto interfaces = address.Assign(devices);
    InstallQueue(disc, devices);
    nodes.Get(0)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
        "TcDrop", MakeCallback(&Dropped));
    Lose(losses, devices.Get(1));

    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 9));
    sink.Install(nodes.Get(1)).Start(Seconds(0));
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(1), 9));
    auto source = bulk.Install(nodes.Get(0));
    source.Start(Seconds(0));
    nodes.Get(1)->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext("LocalDeliver",
                                                                          MakeCallback(&Delivered));
    Simulator::Schedule(NanoSeconds(1), &Watch, source.Get(0));
    Simulator::Stop(Seconds(duration_s));
    Simulator::Run();
    std::cout << "received " << g_received << "\ndropped " << g_dropped << '\n';
    Simulator::Destroy();
    return 0;
}
