"""Reads the driver's events as they come and counts: the per-packet path of this program.

Times are whole microseconds, the resolution of ns-2's traces, so that sums are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agents import agent_of
from metrics import FlowCount, FlowSample, Interval, LinkSample, Sample
from orders import has_syn, segments_of
from scenario import Flow, Scenario, Tcp


class BrokenRunError(Exception):
    """ns-2 or this program broke a law that every run obeys."""


def _count_of(flow: Flow) -> FlowCount:
    bare = isinstance(flow, Tcp) and agent_of(flow).bare_first
    missing = flow.packet_bytes - flow.payload_bytes if bare else 0
    segments = segments_of(flow)
    wanted = None if segments is None else segments + has_syn(flow)
    return FlowCount(flow.packet_bytes, has_syn(flow), missing, wanted)


class Reader:
    """What is known of a run so far; `read` fills it."""

    def __init__(self, scenario: Scenario, trace: list[str] | None = None) -> None:
        self.flows = [_count_of(flow) for flow in scenario.flows]
        self.samples: list[Sample] = []
        self.control_dropped = 0
        self.ended = False
        self._plan = scenario
        self._tcp = [i for i, flow in enumerate(scenario.flows) if isinstance(flow, Tcp)]
        self._monitored = {monitor.hop: n for n, monitor in enumerate(scenario.monitors)}
        self._drops = [0] * len(scenario.monitors)
        self._left: list[list[int]] = [[] for _ in scenario.monitors]
        #: Send time of every data packet in the network, by its unique id.
        self._under_way: dict[bytes, int] = {}
        self._trace = trace

    def read(self, lines: Iterable[bytes]) -> None:
        """Count all events of a run, and check that every packet is accounted for."""
        source = iter(lines)
        self._run(source)
        if not self.ended:
            raise BrokenRunError("ns-2 stopped before the end of the run")
        self._drain(source)
        if self._under_way:
            raise BrokenRunError(
                f"packets are not conserved: {len(self._under_way)} vanished in the network"
            )
        self._fill_monitors()

    def _run(self, lines: Iterator[bytes]) -> None:
        """Count until the end of the run; each data packet passes this loop three times."""
        flows, under_way = self.flows, self._under_way
        previous: list[bytes] = []
        for line in lines:
            words = line.split()
            what = words[0]
            if what == b"+":
                time_us = round(float(words[1]) * 1e6)
                if flows[int(words[2])].send(int(words[10]), time_us):
                    under_way[words[11]] = time_us
            elif what == b"r":
                flow = flows[int(words[2])]
                sent_us = under_way.pop(words[11], -1)
                if sent_us >= 0:
                    flow.receive(int(words[10]), sent_us, round(float(words[1]) * 1e6))
                elif not flow.receive_syn(words[10]):
                    raise BrokenRunError(f"a packet arrived that was not sent: {line!r}")
            elif what == b"h":
                flows[int(words[2])].acknowledge(int(words[10]), round(float(words[1]) * 1e6))
            elif what == b"E":
                self.ended = True
                return
            else:
                self._take(words, previous)
            previous = words

    def _take(self, words: list[bytes], previous: list[bytes]) -> None:
        """Count what is not a packet of every day."""
        what = words[0]
        if what == b"d":
            self._drop(words)
        elif what == b"S":
            self._sample(words)
        elif what == b"M":
            self._left[int(words[1])].append(int(words[2]))
        elif what == b"X":
            self.flows[int(words[1])].stop(int(words[2]))
        elif what == b"C" and self._trace is not None:
            self._record(words, previous, self._trace)
        else:
            raise BrokenRunError(f"ns-2 wrote what it should not: {words!r}")

    def _drain(self, lines: Iterator[bytes]) -> None:
        """Follow what was in the network at the end until it has left it."""
        under_way = self._under_way
        for line in lines:
            words = line.split()
            if words[0] in (b"r", b"d"):
                flow = words[2] if words[0] == b"r" else words[7]
                if under_way.pop(words[11], -1) >= 0:
                    self.flows[int(flow)].in_flight += 1
            elif words[0] == b"M":
                self._left[int(words[1])].append(int(words[2]))
            elif words[0] == b"+":
                raise BrokenRunError("a flow was not silent after it stopped")

    def _drop(self, words: list[bytes]) -> None:
        monitor = self._monitored.get(int(words[2]))
        if monitor is not None:
            self._drops[monitor] += 1
        if words[4] != b"ack" and self._under_way.pop(words[11], -1) >= 0:
            flow = self.flows[int(words[7])]
            flow.dropped += 1
            flow.interval.drops += 1
        else:
            self.control_dropped += 1

    def _sample(self, words: list[bytes]) -> None:
        states = dict(zip(self._tcp, zip(words[1::2], words[2::2], strict=False), strict=False))
        waiting = words[1 + 2 * len(self._tcp) :]
        rows = []
        for i, count in enumerate(self.flows):
            cwnd, ssthresh = (float(x) for x in states[i]) if i in states else (0.0, 0.0)
            shown = count.connected and count.completed_us is None
            rows.append(FlowSample(count.interval, cwnd, ssthresh, count.last_rtt_us, shown))
            count.interval = Interval()
        links = [
            LinkSample(0, int(packets), drops)
            for packets, drops in zip(waiting, self._drops, strict=True)
        ]
        self._drops = [0] * len(links)
        self.samples.append(Sample(rows, links))

    def _fill_monitors(self) -> None:
        """Put in the bytes that left each monitored link, which are known one delay later."""
        for n, totals in enumerate(self._left):
            if len(totals) != len(self.samples):
                raise BrokenRunError("samples of a monitor are missing")
            before = 0
            for sample, total in zip(self.samples, totals, strict=True):
                sample.links[n].left_bytes = total - before
                before = total

    def _record(self, state: list[bytes], line: list[bytes], trace: list[str]) -> None:
        """Add the rows of --trace: bytes counted from 0, cwnd as the sender has it now."""
        index = int(state[1])
        flow, spec = self.flows[index], self._plan.flows[index]
        segment = spec.payload_bytes
        number = int(line[10]) - flow.first_data
        ssthresh = float(state[3])
        tail = f",{round(float(state[2]) * segment)},{flow.bytes_or_empty(ssthresh, segment)}"
        time = f"{float(line[1]):.6f},{spec.id}"
        while flow.timeouts_seen < int(state[4]):
            flow.timeouts_seen += 1
            trace.append(f"{time},timeout,{max(0, number) * segment}{tail}")
        if line[0] == b"+" and number < 0:
            return
        if line[0] == b"h":
            trace.append(f"{time},ack,{max(0, number + 1) * segment}{tail}")
        else:
            kind = "retransmit" if flow.last_was_again else "send"
            trace.append(f"{time},{kind},{number * segment}{tail}")
