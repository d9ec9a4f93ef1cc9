"""What a user would write: the bench's dumbbell on ns-3's Python bindings and helpers.

    source i --(access)-- left --(bottleneck)-- right --(access)-- sink i

    python bindings.py SCENARIO.json [--flow-monitor]

Bulk senders of one congestion control, packet sinks, global routing and DropTail queues, with the
scenario's rates, delays, limits and times. Prints JSON: packets that arrived at the sinks, by the
flow monitor or by bytes over segment size, and events. Nothing of the replication package is used.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ns import ns

MTU_BYTES = 1500


def main(path: str, with_monitor: bool) -> None:
    """Build the network of a scenario, run it and print what arrived."""
    scenario = json.loads(Path(path).read_text(encoding="utf-8"))
    links = {link["id"]: link for link in scenario["links"]}
    flows = scenario["flows"]
    _set_defaults(flows[0])
    nodes = {name: ns.CreateObject[ns.Node]() for name in scenario["nodes"]}
    stack = ns.InternetStackHelper()
    for node in nodes.values():
        stack.Install(node)
    addresses: dict[str, object] = {}
    pool = ns.Ipv4AddressHelper()
    for number, link in enumerate(links.values()):
        devices = _connect(nodes[link["a"]], nodes[link["b"]], link)
        pool.SetBase(
            ns.Ipv4Address(f"10.{number // 256}.{number % 256}.0"), ns.Ipv4Mask("255.255.255.0")
        )
        interfaces = pool.Assign(devices)
        # The helper's own queue discipline is no part of the scenario.
        ns.TrafficControlHelper().Uninstall(devices)
        addresses[link["b"]] = interfaces.GetAddress(1)
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
    sinks = [_add_flow(nodes, addresses, flow, 5000 + i) for i, flow in enumerate(flows)]
    helper = ns.FlowMonitorHelper()
    monitor = helper.InstallAll() if with_monitor else None
    ns.Simulator.Stop(ns.Seconds(scenario["duration_s"]))
    ns.Simulator.Run()
    received = sum(sink.GetTotalRx() for sink in sinks) // flows[0]["segment_bytes"]
    if monitor is not None:
        monitor.CheckForLostPackets()
        ports = range(5000, 5000 + len(flows))
        received = sum(
            stats.rxPackets
            for key, stats in monitor.GetFlowStats()
            if helper.GetClassifier().FindFlow(key).destinationPort in ports
        )
    print(json.dumps({"packets": received, "events": ns.Simulator.GetEventCount()}))


def _set_defaults(flow: dict[str, object]) -> None:
    values = {
        "TcpL4Protocol::SocketType": ns.StringValue("ns3::TcpNewReno"),
        "TcpL4Protocol::RecoveryType": ns.StringValue("ns3::TcpClassicRecovery"),
        "TcpSocket::SegmentSize": ns.UintegerValue(flow["segment_bytes"]),
        "TcpSocket::InitialCwnd": ns.UintegerValue(flow["initial_window_segments"]),
        "TcpSocket::DelAckCount": ns.UintegerValue(flow["delayed_ack_segments"]),
        "TcpSocket::SndBufSize": ns.UintegerValue(1 << 22),
        "TcpSocket::RcvBufSize": ns.UintegerValue(1 << 22),
        "TcpSocketBase::Sack": ns.BooleanValue(flow["sack"]),
        "TcpSocketBase::Timestamp": ns.BooleanValue(flow["timestamps"]),
        "TcpSocketBase::MinRto": ns.TimeValue(ns.Seconds(flow["minimum_rto_s"])),
    }
    for name, value in values.items():
        ns.Config.SetDefault(f"ns3::{name}", value)


def _connect(a: object, b: object, link: dict[str, object]) -> object:
    helper = ns.PointToPointHelper()
    limit = f"{link['queue_ab']['limit_packets']}p"  # type: ignore[index]
    helper.SetDeviceAttribute("DataRate", ns.StringValue(f"{link['rate_bps']:.0f}bps"))
    helper.SetDeviceAttribute("Mtu", ns.UintegerValue(MTU_BYTES))
    helper.SetChannelAttribute("Delay", ns.StringValue(f"{link['delay_s'] * 1e9:.0f}ns"))
    helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns.StringValue(limit))
    pair = ns.NodeContainer()
    pair.Add(a)
    pair.Add(b)
    return helper.Install(pair)


def _add_flow(
    nodes: dict[str, object], addresses: dict[str, object], flow: dict[str, object], port: int
) -> object:
    peer = ns.InetSocketAddress(addresses[str(flow["destination"])], port).ConvertTo()
    source = ns.BulkSendHelper("ns3::TcpSocketFactory", peer)
    source.SetAttribute("MaxBytes", ns.UintegerValue(0))
    source.SetAttribute("SendSize", ns.UintegerValue(flow["segment_bytes"]))
    sender = source.Install(nodes[str(flow["source"])])
    sender.Start(ns.Seconds(flow["start_s"]))
    sender.Stop(ns.Seconds(flow["stop_s"]))
    anywhere = ns.InetSocketAddress(ns.Ipv4Address.GetAny(), port).ConvertTo()
    receiver = ns.PacketSinkHelper("ns3::TcpSocketFactory", anywhere)
    sink = receiver.Install(nodes[str(flow["destination"])])
    return sink.Get(0).GetObject[ns.PacketSink]()


if __name__ == "__main__":
    main(sys.argv[1], "--flow-monitor" in sys.argv[2:])
