"""The engines, the scenarios that they refuse, and Debian's packages that they require."""

import functools
import math
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from replication.base.files import file_sha256
from replication.base.model import Document
from replication.base.position import read_models
from replication.engines.model import Engine, Refusals
from replication.engines.ns3 import NS3_VERSION, own_program
from replication.study.link import ListedLoss, Queue, Red, Shaper, TokenBucketFilter
from replication.study.scenario import Host, Scenario, TcpFlow


def _named(names: str) -> frozenset[str]:
    return frozenset(names.split())


#: Settings of hosts, which a simulator does not have.
_OF_KERNELS = {f"host.{name}": f"host setting {name!r}" for name in Host.model_fields}
#: The ns-3 release with CUBIC's Reno-friendly region (release notes of 3.41, #1001).
_NS3_CUBIC_FRIENDLINESS = 41


def _ns3_refuses_flow(version: str, flow: TcpFlow) -> Refusals:
    control, sack = flow.congestion_control, flow.sack
    is_friendly = control == "cubic" and flow.cubic_tcp_friendliness
    is_old = int(version.split(".")[1]) < _NS3_CUBIC_FRIENDLINESS
    is_prr = flow.recovery != "classic"
    is_bare = not (sack or flow.limited_transmit)
    return {
        "with SACK or PRR": control in ("tahoe", "reno") and (sack or is_prr),
        "with PRR": control == "westwood" and is_prr,
        "with ECN": control in ("tahoe", "reno", "westwood") and flow.ecn,
        "without ECN": control == "dctcp" and not flow.ecn,
        "without timestamps": control in ("ledbat", "lp") and not flow.timestamps,
        "with neither SACK nor limited transmit": control == "bbr" and is_bare,
        f"with TCP friendliness in version {version}": is_old and is_friendly,
    }


def _ns3_refuses_scenario(scenario: Scenario) -> Refusals:
    shapers: list[Shaper | None] = []
    framed: list[Queue] = []
    for link in scenario.links:
        shapers += [link.shaper_ab, link.shaper_ba]
        if link.frame_bytes:
            framed += [link.queue_ab, link.queue_ba]
    short_frame = "frame_bytes of 1: its links have two at least"
    return {
        "shaper 'tbf'": any(isinstance(shaper, TokenBucketFilter) for shaper in shapers),
        short_frame: any(link.frame_bytes == 1 for link in scenario.links),
        "frame_bytes in limits in bytes": any(map(_counts_bytes, framed)),
    }


def _counts_bytes(queue: Queue) -> bool:
    return bool(getattr(queue, "limit_bytes", None) or getattr(queue, "byte_mode", False))


_MANY_SEGMENTS = "with an acknowledgement for more than two segments"
#: ns-2's agents that run modules of Linux, with a scoreboard that always uses SACK.
_NS2_LINUX = _named("bic cubic htcp hybla illinois linuxreno scalable veno westwood_plus yeah")
#: ns-2's module is that of Linux 2.6.22: beta is 819/1024, and HyStart (2.6.29) is missing.
_NS2_CUBIC_BETA = 0.8


def _ns2_refuses_flow(flow: TcpFlow) -> Refusals:
    control, sack, limited = flow.congestion_control, flow.sack, flow.limited_transmit
    is_cubic, is_highspeed = control == "cubic", control == "highspeed"
    is_early = flow.connect_s not in (None, flow.start_s)
    # These agents send the first segment when the SYN is acknowledged.
    shakes_hands = control in ("tahoe", "reno", "newreno") or (is_highspeed and not sack)
    beta = round(1024 * _NS2_CUBIC_BETA)
    return {
        "with a connection before its data": is_early and shakes_hands,
        "with PRR": flow.recovery != "classic",
        "with ECN": flow.ecn and control == "vegas",
        _MANY_SEGMENTS: flow.delayed_ack_segments > 2,
        "with SACK": control in ("tahoe", "reno", "vegas") and sack,
        "without SACK and limited transmit": control in _NS2_LINUX and not (sack and limited),
        "with SACK but without limited transmit": is_highspeed and sack and not limited,
        f"with a beta other than {_NS2_CUBIC_BETA}": is_cubic and _in_1024ths(flow) != beta,
        "with HyStart": is_cubic and flow.cubic_hystart,
    }


def _in_1024ths(flow: TcpFlow) -> int:
    # CUBIC's beta in units of Linux's module (BICTCP_BETA_SCALE of tcp_cubic.c).
    return round(1024 * (flow.cubic_beta or 0))


def _ns2_refuses_queue(queue: Queue) -> Refusals:
    if not isinstance(queue, Red):
        return {}
    return {
        "with a device queue of more than one packet": queue.device_queue_packets > 1,
        "with a minimum threshold of 0": queue.minimum_threshold_packets == 0,
    }


#: Settings of links that change while a scenario runs.
_CHANGING = {
    "link.changes": "link that changes",
    "link.opportunities_ab": "link with opportunities",
    "link.opportunities_ba": "link with opportunities",
}
_NS2_LACKS = {
    "link.shaper_ab": "shaper",
    "link.shaper_ba": "shaper",
    "link.frame_bytes": "frame_bytes",
}


_ETHERNET_BYTES = 14
#: Limits of the time to set up links (guest/common.h), and of the guest's memory.
_LINUX_MOST_FLOWS, _LINUX_MOST_LINKS, _LINUX_MOST_ROWS = 5000, 4000, 10**7
#: Module parameters, which all flows of a kernel share.
_LINUX_SHARED = {
    "vegas": ("vegas_alpha_packets", "vegas_beta_packets", "vegas_gamma_packets"),
    "cubic": ("cubic_tcp_friendliness", "cubic_fast_convergence", "cubic_beta", "cubic_hystart"),
}


def _linux_refuses_flow(flow: TcpFlow) -> Refusals:
    control, segments = flow.congestion_control, flow.delayed_ack_segments
    is_late = flow.delayed_ack_timeout_s != 0.04
    has_beta = control != "cubic" or 0 < _in_1024ths(flow) < 1024
    # The limits of TCP_MAXSEG, and of windows: a segment is at most half of the sender's window.
    segment, least, most = flow.segment_bytes, 88, 32755
    window, least_window, most_window = flow.maximum_window_bytes, max(1200, 2 * segment), 1 << 28
    fits = window is None or least_window <= window <= most_window
    # The initial RTO is the kernel's TCP_TIMEOUT_INIT, and the largest one its TCP_RTO_MAX.
    return {
        "with a recovery other than PRR": flow.recovery != "prr",
        "without limited transmit": not flow.limited_transmit,
        "with an initial ssthresh": flow.initial_ssthresh_bytes is not None,
        "with an initial RTO other than 1 s": flow.initial_rto_s != 1.0,
        _MANY_SEGMENTS: segments > 2,
        "with a delayed acknowledgement timeout other than 0.04 s": segments == 2 and is_late,
        "with a beta of 0 or 1 in 1024ths": not has_beta,
        "without timestamps": control == "lp" and not flow.timestamps,
        "without ECN": control == "dctcp" and not flow.ecn,
        "with a minimum RTO above 120 s": flow.minimum_rto_s > 120.0,
        f"with segments of {segment} bytes, but from {least} to {most}": (
            not least <= segment <= most
        ),
        f"with a maximum window of {window} bytes, but from {least_window} to {most_window}": (
            not fits
        ),
    }


def _linux_refuses_scenario(scenario: Scenario) -> Refusals:
    links, flows, rows = len(scenario.links), len(scenario.flows), round(scenario.series_rows)
    slowest_bps = min(min(link.rates_bps) for link in scenario.links)
    # netem's half jitter is a signed number of 32 bits (`tabledist` of sch_netem.c).
    jitter_s = max(link.jitter_s for link in scenario.links)
    tcp = [LINUX.resolved(flow) for flow in scenario.flows if isinstance(flow, TcpFlow)]
    windows = {flow.maximum_window_bytes for flow in tcp}
    # The kernel tunes such windows, with one limit for all.
    tuned = {window for window in windows if window is None or window >= 3 << 20}
    return {
        "link slower than 8 bit/s": round(slowest_bps / 8) == 0,
        "link with a jitter above 4 s": jitter_s > 4.0,
        f"room for {links} links, but for {_LINUX_MOST_LINKS}": links > _LINUX_MOST_LINKS,
        f"room for {flows} flows, but for {_LINUX_MOST_FLOWS}": flows > _LINUX_MOST_FLOWS,
        # Only a device without scatter-gather holds segments in linear memory, and it cannot merge.
        "segment_memory_bytes with segmentation offload": bool(
            scenario.host.segment_memory_bytes and scenario.host.segmentation_offload
        ),
        f"room for {rows} rows of series, but for {_LINUX_MOST_ROWS}": rows > _LINUX_MOST_ROWS,
        "flows whose maximum windows, from 3145728 bytes on, differ": len(tuned) > 1,
        **_linux_refuses_shapers(scenario),
        **_linux_refuses_links(scenario),
        **_linux_refuses_together(tcp, scenario.host.timer_hz),
    }


def _linux_refuses_together(tcp: list[TcpFlow], timer_hz: int) -> Refusals:
    refused: dict[str, bool] = {}
    for control, names in _LINUX_SHARED.items():
        senders = [flow for flow in tcp if flow.congestion_control == control]
        for name in names:
            values = {getattr(flow, name) for flow in senders}
            refused[f"flows of {control} that differ in {name}"] = len(values) > 1
    # Routes store the minimum RTO in milliseconds, and the kernel in ticks.
    step_ms = 1000 // math.gcd(1000, timer_hz)
    tick_s, step_s = f"{1 / timer_hz:g} s", f"{step_ms / 1000:g} s"
    for flow in tcp:
        control = flow.congestion_control
        if round(flow.clock_granularity_s * 1e9) != round(1e9 / timer_hz):
            refused[f"{control} with a clock granularity other than {tick_s}"] = True
        if round(flow.minimum_rto_s * 1e9) % (step_ms * 1_000_000):
            refused[f"{control} with a minimum RTO that is not a multiple of {step_s}"] = True
    return refused


def _linux_refuses_links(scenario: Scenario) -> Refusals:
    refused = []
    for link in scenario.links:
        has_new_rate = len(link.rates_bps) > 1
        for queue, loss, direction in (
            (link.queue_ab, link.loss_ab, "ab"),
            (link.queue_ba, link.loss_ba, "ba"),
        ):
            # A merged packet would hold several data packets, of which one is listed.
            if isinstance(loss, ListedLoss) and scenario.host.segmentation_offload:
                refused.append("listed losses with segmentation offload")
            # RED runs behind TBF, whose bucket a change fills; its idle time goes by the rate.
            if isinstance(queue, Red) and (has_new_rate or link.opportunities(direction)):
                refused.append("RED where the rate changes")
    return dict.fromkeys(refused, True)


def _linux_refuses_shapers(scenario: Scenario) -> Refusals:
    merges = scenario.host.segmentation_offload
    largest_bytes = max(flow.packet_bytes for flow in scenario.flows)
    refused = []
    for link in scenario.links:
        # TBF drops packets larger than its bucket; it counts at least Ethernet's header.
        least_bytes = largest_bytes + max(link.frame_bytes, _ETHERNET_BYTES)
        for queue, shaper in ((link.queue_ab, link.shaper_ab), (link.queue_ba, link.shaper_ba)):
            if isinstance(shaper, TokenBucketFilter):
                if shaper.burst_bytes < least_bytes:
                    text = f"shaper 'tbf' with a burst below a packet of {least_bytes} bytes"
                    refused.append(text)
                # Packets that TBF cuts count as Ethernet frames, whatever the size table says.
                if merges and link.frame_bytes != _ETHERNET_BYTES:
                    refused.append(
                        "shaper 'tbf' with segmentation offload and frame_bytes other than 14"
                    )
            elif merges and isinstance(queue, Red):
                refused.append("RED with segmentation offload: its shaper would cut merged packets")
    return dict.fromkeys(refused, True)


def _linux_refuses_queue(queue: Queue) -> Refusals:
    if isinstance(queue, Red):
        power, high = -math.log2(queue.queue_weight), queue.maximum_threshold_packets
        # Values must fit into 31 bits (red_check_params of the kernel).
        fits = power <= 31 and high <= 1e6 and high * queue.mean_packet_bytes * 2.0**power < 2**31
        return {
            "that is gentle, waits or counts bytes": queue.gentle or queue.wait or queue.byte_mode,
            "with a weight that is not a power of two": power != round(power),
            "with thresholds this high or so low a weight": not fits,
        }
    times_s = [value for name, value in queue if name.endswith("_s")]
    quantum_bytes = getattr(queue, "quantum_bytes", 256)
    return {
        "with times that are not whole microseconds": any(round(t * 1e9) % 1000 for t in times_s),
        "with more than 65536 buckets": getattr(queue, "buckets", 0) > 65536,
        "with a quantum below 256 or above 1048576 bytes": not 256 <= quantum_bytes <= 1 << 20,
    }


def linux_cache(root: Path) -> Path:
    """Return the folder of built kernels, which `make clean` keeps."""
    return root / ".cache" / "linux"


def kernels_to_build(root: Path, timer_hz: Iterable[int]) -> list[int]:
    """Return the timer frequencies of kernels that are not built yet."""
    keys = {hz: _ask_linux_build(root, "--hz", str(hz), "--key") for hz in timer_hz}
    return [hz for hz, key in keys.items() if not (linux_cache(root) / key / "linux").is_file()]


@functools.cache
def _linux_build(root: Path, *question: str) -> "subprocess.Popen[str]":
    script = root / "workflow/engines/linux/build"
    command = [str(script.absolute()), "--cache", str(linux_cache(root).absolute()), *question]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)


@functools.cache
def _ask_linux_build(root: Path, *question: str) -> str:
    process = _linux_build(root, *question)
    output, errors = process.communicate()
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, process.args, output, errors)
    return output.strip()


def ask_early(root: Path) -> None:
    """Start to look at the tools of the engine linux, while this process does something else."""
    for question in ("--missing", "--key"):
        _linux_build(root, question)


def _linux_key(root: Path) -> str:
    """Return the hash of the kernel's sources and compiler; empty if it cannot be built."""
    return "" if LINUX.missing(root) else _ask_linux_build(root, "--key")


@functools.cache
def ns3(version: str) -> Engine:
    """Return the engine ns3 in a version of a wheel or of the folder NS3_PREFIX."""
    engine = Engine(
        name="ns3",
        title="ns-3",
        version=version,
        congestion_controls=_named(
            "tahoe reno newreno linuxreno cubic vegas westwood westwood_plus highspeed bbr bic "
            "dctcp htcp hybla illinois ledbat lp scalable veno yeah"
        ),
        queues=frozenset({"droptail", "pfifo", "red", "codel", "fq_codel", "pie"}),
        losses=frozenset({"random", "listed"}),
        refuse_flow=functools.partial(_ns3_refuses_flow, version),
        refuse_queue=lambda queue: {},
        refuse_scenario=_ns3_refuses_scenario,
        lacks=_OF_KERNELS,
        reads_json=False,
        cost=(0.08, 4.2e-6),
        nominal_cost=(0.05, 4e-6),
        own_program=lambda root: own_program(root, engine),
    )
    return engine


NS3 = ns3(NS3_VERSION)
NS2 = Engine(
    name="ns2",
    title="ns-2",
    version="2.35",
    congestion_controls=_NS2_LINUX | {"highspeed", "newreno", "reno", "tahoe", "vegas"},
    queues=frozenset({"droptail", "pfifo", "red"}),
    losses=frozenset({"random", "listed"}),
    refuse_flow=_ns2_refuses_flow,
    refuse_queue=_ns2_refuses_queue,
    refuse_scenario=lambda scenario: {},
    lacks=_OF_KERNELS | _CHANGING | _NS2_LACKS,
    cubic_beta=_NS2_CUBIC_BETA,
    cubic_hystart=False,
    cost=(0.13, 1.3e-6),
    # A jittered packet calls Tcl (workflow/engines/ns2/README.md).
    jitter_cost_s=15e-6,
    nominal_cost=(0.13, 1e-6),
    shared=True,
    missing=lambda root: [] if shutil.which("ns") else ["ns2"],
    machine=lambda root: _other_build(root, "ns2"),
)
LINUX = Engine(
    name="linux",
    title="Linux",
    version="6.12",
    released="2024, long-term",
    congestion_controls=_named(
        "bbr bic cubic dctcp highspeed htcp hybla illinois linuxreno lp scalable vegas "
        "veno westwood_plus yeah"
    ),
    queues=NS3.queues | {"fq_pie", "cake"},
    losses=frozenset({"random", "listed"}),
    refuse_flow=_linux_refuses_flow,
    refuse_queue=_linux_refuses_queue,
    cost=(0.35, 12e-6),
    nominal_cost=(0.35, 10e-6),
    refuse_scenario=_linux_refuses_scenario,
    # Linux's default time to live is 64.
    most_hops=60,
    shared=True,
    missing=lambda root: _ask_linux_build(root, "--missing").split(),
    built=lambda root: (linux_cache(root) / _linux_key(root) / "linux").is_file(),
    machine=_linux_key,
)
ENGINES: dict[str, Engine] = {engine.name: engine for engine in (NS3, NS2, LINUX)}


def chosen_engine(name: str, ns3_version: str = NS3_VERSION) -> Engine:
    """Return an engine by its name, ns3 in the given version."""
    return ns3(ns3_version) if name == "ns3" else ENGINES[name]


#: The packages of the released results, below the project's folder.
LOCK = Path("workflow/engines/packages.yaml")


class LockedPackage(Document):
    """A Debian package that decides an engine's results, and the hash of its `file`."""

    package: str
    version: str
    file: str
    sha256: str


def locked_packages(root: Path) -> dict[str, LockedPackage]:
    """Return the locked packages by engine; InputError names a wrong field."""
    return read_models(root / LOCK, LockedPackage)


@functools.cache
def _sha256(root: Path, file: Path) -> str:
    """Return the hash of a file, which the kernel's build notes with size and date."""
    noted = linux_cache(root) / "source.sha256"
    lines = noted.read_text(encoding="utf-8").splitlines() if noted.is_file() else []
    status = file.stat()
    if lines[:-1] == [f"{file} {status.st_size} {int(status.st_mtime)}"]:
        return lines[-1].split()[0]
    return file_sha256(file)


def package_warning(package: dict[str, Any] | None) -> str:
    """Return how a package of a provenance differs from the lock; empty if it does not."""
    if not package or package.get("as_locked"):
        return ""
    here, locked = str(package.get("version")), str(package.get("locked_version"))
    named = "another build of it" if here == locked else locked
    return (
        f"Debian's {package.get('package')} is {here} here, the lock has {named}: "
        "results may differ from the released ones"
    )


def find_package(root: Path, engine: str) -> dict[str, Any] | None:
    """Return the installed package that an engine's results depend on, if any."""
    locked = locked_packages(root).get(engine)
    if locked is None:
        return None
    # The build of the linux engine reads this variable too.
    source = os.environ.get("REPLICATION_LINUX_SOURCE") if engine == "linux" else None
    file = Path(source or locked.file)
    if not file.is_file():
        return None
    name, version, sha256 = locked.package, locked.version, _sha256(root, file)
    as_locked = sha256 == locked.sha256
    return {
        "package": name,
        "version": version if as_locked else _installed_version(name),
        "sha256": sha256,
        "locked_version": version,
        "as_locked": as_locked,
    }


def _other_build(root: Path, engine: str) -> str:
    """Return the hash of an engine's package; empty if it is the locked one or not installed."""
    package = find_package(root, engine)
    return "" if package is None or package["as_locked"] else str(package["sha256"])


def _installed_version(package: str) -> str:
    command = ["dpkg-query", "--show", "--showformat=${Version}", package]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
