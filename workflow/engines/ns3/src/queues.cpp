#include "queues.hpp"

#include <ns3/boolean.h>
#include <ns3/codel-queue-disc.h>
#include <ns3/data-rate.h>
#include <ns3/double.h>
#include <ns3/fifo-queue-disc.h>
#include <ns3/fq-codel-queue-disc.h>
#include <ns3/nstime.h>
#include <ns3/pie-queue-disc.h>
#include <ns3/red-queue-disc.h>
#include <ns3/uinteger.h>

#include <algorithm>
#include <limits>

namespace replicate
{
namespace
{

/// Packets that fit between a shaper and its line: what it lets go is never held back there.
constexpr std::uint32_t kLinePackets = 1'000'000;

using ns3::BooleanValue;
using ns3::DoubleValue;
using ns3::QueueSize;
using ns3::QueueSizeUnit;
using ns3::QueueSizeValue;
using ns3::TimeValue;
using ns3::UintegerValue;

QueueSizeValue Bytes(std::uint64_t bytes)
{
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    return QueueSizeValue(
        QueueSize(QueueSizeUnit::BYTES, static_cast<std::uint32_t>(std::min(bytes, kMost))));
}

QueueSizeValue Packets(std::uint32_t packets)
{
    return QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, packets));
}

/// Of a FIFO: in packets or in bytes.
QueueSizeValue LimitOf(const QueueSpec& spec)
{
    return spec.limit_packets ? Packets(*spec.limit_packets) : Bytes(*spec.limit_bytes);
}

ns3::Ptr<ns3::Queue<ns3::Packet>> MakeDropTail(const QueueSizeValue& limit)
{
    return ns3::CreateObjectWithAttributes<ns3::DropTailQueue<ns3::Packet>>("MaxSize", limit);
}

TimeValue Duration(Statement& settings, const std::string& name)
{
    return TimeValue(ns3::NanoSeconds(settings.Value<std::int64_t>(name)));
}

/// Floyd and Jacobson 1993; with `gentle`, Floyd 2000. The adaptive variants stay off. In byte mode
/// queue, thresholds and limit are in bytes (packets x mean packet) and large packets are dropped
/// more often than small ones, as with ns-2's queue_in_bytes_ and bytes_.
ns3::Ptr<ns3::QueueDisc> MakeRed(std::uint32_t packets, Statement& settings, const LinkSpec& link,
                                 std::int64_t stream)
{
    const auto mean_bytes = settings.Value<std::uint32_t>("mean_packet_bytes");
    const bool in_bytes = settings.Flag("byte_mode"), marks = settings.Flag("ecn");
    const double unit = in_bytes ? mean_bytes : 1;
    const double low = settings.Value<double>("minimum_threshold_packets");
    const double high = settings.Value<double>("maximum_threshold_packets");
    auto red = ns3::CreateObjectWithAttributes<ns3::RedQueueDisc>(
        "MaxSize", in_bytes ? Bytes(packets * std::uint64_t{mean_bytes}) : Packets(packets),
        "MinTh", DoubleValue(unit * low), "MaxTh", DoubleValue(unit * high), "QW",
        DoubleValue(settings.Value<double>("queue_weight")), "LInterm",
        DoubleValue(1 / settings.Value<double>("maximum_probability")), "MeanPktSize",
        UintegerValue(mean_bytes), "Gentle", BooleanValue(settings.Flag("gentle")), "Wait",
        BooleanValue(settings.Flag("wait")), "LinkBandwidth",
        ns3::DataRateValue(ns3::DataRate(link.rate_bps)), "LinkDelay",
        TimeValue(ns3::NanoSeconds(link.delay_ns)));
    red->SetAttribute("ARED", BooleanValue(false));
    red->SetAttribute("AdaptMaxP", BooleanValue(false));
    red->SetAttribute("FengAdaptive", BooleanValue(false));
    red->SetAttribute("NLRED", BooleanValue(false));
    red->SetAttribute("Ns1Compat", BooleanValue(false));
    red->SetAttribute("UseEcn", BooleanValue(marks));
    red->SetAttribute("UseHardDrop", BooleanValue(!marks));
    red->AssignStreams(stream);
    return red;
}

/// RFC 8289.
ns3::Ptr<ns3::QueueDisc> MakeCoDel(std::uint32_t packets, Statement& settings)
{
    return ns3::CreateObjectWithAttributes<ns3::CoDelQueueDisc>(
        "MaxSize", Packets(packets), "Target", Duration(settings, "target_ns"), "Interval",
        Duration(settings, "interval_ns"), "MinBytes", UintegerValue(1500), "UseEcn",
        BooleanValue(settings.Flag("ecn")), "UseL4s", BooleanValue(false));
}

/// RFC 8290. Target and interval are strings in ns-3's attributes.
ns3::Ptr<ns3::QueueDisc> MakeFqCoDel(std::uint32_t packets, Statement& settings)
{
    auto disc = ns3::CreateObjectWithAttributes<ns3::FqCoDelQueueDisc>(
        "MaxSize", Packets(packets), "Flows",
        UintegerValue(settings.Value<std::uint32_t>("buckets")), "Target",
        ns3::StringValue(settings.Text("target_ns") + "ns"), "Interval",
        ns3::StringValue(settings.Text("interval_ns") + "ns"), "UseEcn",
        BooleanValue(settings.Flag("ecn")), "DropBatchSize", UintegerValue(64), "Perturbation",
        UintegerValue(0));
    disc->SetQuantum(settings.Value<std::uint32_t>("quantum_bytes"));
    return disc;
}

/// RFC 8033, with the RFC's own constants for what the scenario does not name.
ns3::Ptr<ns3::QueueDisc> MakePie(std::uint32_t packets, Statement& settings, std::int64_t stream)
{
    auto pie = ns3::CreateObjectWithAttributes<ns3::PieQueueDisc>(
        "MaxSize", Packets(packets), "QueueDelayReference", Duration(settings, "target_ns"),
        "Tupdate", Duration(settings, "update_interval_ns"), "MeanPktSize",
        UintegerValue(settings.Value<std::uint32_t>("mean_packet_bytes")), "A", DoubleValue(0.125),
        "B", DoubleValue(1.25), "MaxBurstAllowance", TimeValue(ns3::NanoSeconds(150'000'000)));
    pie->SetAttribute("UseDequeueRateEstimator", BooleanValue(false));
    pie->SetAttribute("UseCapDropAdjustment", BooleanValue(true));
    pie->SetAttribute("UseDerandomization", BooleanValue(false));
    pie->SetAttribute("UseEcn", BooleanValue(settings.Flag("ecn")));
    pie->AssignStreams(stream);
    return pie;
}

ns3::Ptr<ns3::QueueDisc> MakeDisc(const QueueSpec& spec, Statement& settings, const LinkSpec& link,
                                  std::int64_t stream)
{
    switch (spec.kind) {
    case QueueKind::DropTail:
        return nullptr;
    case QueueKind::Pfifo:
        return MakeFifo(spec);
    case QueueKind::Red:
        return MakeRed(*spec.limit_packets, settings, link, stream);
    case QueueKind::CoDel:
        return MakeCoDel(*spec.limit_packets, settings);
    case QueueKind::FqCoDel:
        return MakeFqCoDel(*spec.limit_packets, settings);
    case QueueKind::Pie:
        return MakePie(*spec.limit_packets, settings, stream);
    }
    return nullptr;
}

} // namespace

ns3::Ptr<ns3::Queue<ns3::Packet>> MakeDeviceQueue(const QueueSpec& spec)
{
    return MakeDropTail(spec.kind == QueueKind::DropTail ? LimitOf(spec)
                                                         : Packets(spec.device_queue_packets));
}

ns3::Ptr<ns3::Queue<ns3::Packet>> MakeLineQueue()
{
    return MakeDropTail(Packets(kLinePackets));
}

ns3::Ptr<ns3::QueueDisc> MakeFifo(const QueueSpec& spec)
{
    return ns3::CreateObjectWithAttributes<ns3::FifoQueueDisc>("MaxSize", LimitOf(spec));
}

ns3::Ptr<ns3::QueueDisc> MakeQueueDisc(const QueueSpec& spec, const LinkSpec& link,
                                       std::int64_t stream)
{
    auto settings = spec.settings;
    const auto disc = MakeDisc(spec, settings, link, stream);
    settings.End();
    return disc;
}

} // namespace replicate
