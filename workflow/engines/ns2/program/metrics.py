"""Counters of a run; times in microseconds."""

from __future__ import annotations

from dataclasses import dataclass, field

from agents import UNLIMITED_PACKETS

#: Delays are counted in bins this wide, for their 95th percentile.
BIN_US = 10


@dataclass(slots=True)
class Interval:
    """What happened to a flow since the last sample."""

    received: int = 0
    counted_bytes: int = 0
    delay_us: int = 0
    drops: int = 0
    retransmissions: int = 0
    delivered: int = 0


@dataclass(slots=True)
class FlowSample:
    """A flow at a sample; cwnd and ssthresh in packets."""

    interval: Interval
    cwnd: float
    ssthresh: float
    rtt_us: int
    connected: bool


@dataclass(slots=True)
class LinkSample:
    """A monitored direction at a sample."""

    left_bytes: int
    waiting: int
    drops: int


@dataclass(slots=True)
class Sample:
    """One instant of series.csv."""

    flows: list[FlowSample]
    links: list[LinkSample]


@dataclass(slots=True)
class FlowCount:
    """Counters of one flow; packets are data packets.

    `counted` are those that arrived while the flow was active, `delivered` those that the
    application got in order meanwhile. Packet 0 may lack `missing_bytes` of headers. A transfer is
    of `wanted` packets, its SYN among them, and over when all are there; None is without end.
    """

    packet_bytes: int
    syn: bool
    missing_bytes: int = 0
    wanted: int | None = None
    sent: int = 0
    received: int = 0
    counted: int = 0
    counted_bytes: int = 0
    delivered: int = 0
    dropped: int = 0
    in_flight: int = 0
    retransmissions: int = 0
    timeouts: int = 0
    delay_us: int = 0
    longest_us: int = 0
    bins: dict[int, int] = field(default_factory=dict)
    rtt_us: int = 0
    rtt_samples: int = 0
    last_rtt_us: int = 0
    syns_again: int = 0
    active: bool = True
    #: Whether an acknowledgement has come.
    connected: bool = False
    timeouts_seen: int = 0
    last_was_again: bool = False
    interval: Interval = field(default_factory=Interval)
    first_data: int = 0
    #: When a transfer's last packet arrived.
    completed_us: int | None = None
    _highest: int = -1
    _acknowledged: int = -1
    _expected: int = 0
    _early: set[int] = field(default_factory=set)
    #: When each outstanding packet was sent; -1 once it was sent again.
    _sent_us: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.first_data = int(self.syn)

    def send(self, number: int, time_us: int) -> bool:
        """Count a packet that leaves the source; return whether it carries data."""
        again = number <= self._highest
        self.last_was_again = again
        if again:
            self._sent_us[number] = -1
        else:
            self._highest = number
            self._sent_us[number] = time_us
        if number == 0 and self.syn:
            self.syns_again += again
            return False
        self.sent += 1
        if again:
            self.retransmissions += 1
            self.interval.retransmissions += 1
        return True

    def receive(self, number: int, sent_us: int, time_us: int) -> None:
        """Count a data packet at the destination host."""
        delay_us = time_us - sent_us
        self.received += 1
        self.delay_us += delay_us
        if delay_us > self.longest_us:
            self.longest_us = delay_us
        where = delay_us // BIN_US
        self.bins[where] = self.bins.get(where, 0) + 1
        interval = self.interval
        interval.received += 1
        interval.delay_us += delay_us
        if self.active:
            size = self.packet_bytes if number else self.packet_bytes - self.missing_bytes
            self.counted += 1
            self.counted_bytes += size
            interval.counted_bytes += size
        self._deliver(number)
        if self._expected == self.wanted and self.active:
            self.active = False
            self.completed_us = time_us

    def receive_syn(self, number: bytes) -> bool:
        """Count a SYN at the destination host, if it is one."""
        if self.syn and number == b"0":
            self._deliver(0)
            return True
        return False

    def _deliver(self, number: int) -> None:
        if number == self._expected:
            last = number + 1
            early = self._early
            while last in early:
                early.remove(last)
                last += 1
            self._expected = last
            if self.active:
                self.delivered += last - number
                self.interval.delivered += last - max(number, self.first_data)
        elif number > self._expected:
            self._early.add(number)

    def acknowledge(self, number: int, time_us: int) -> None:
        """Take the round trip of the newest packet acknowledged, unless it was sent again."""
        self.connected = True
        if number <= self._acknowledged:
            return
        sent = self._sent_us
        for skipped in range(self._acknowledged + 1, number):
            sent.pop(skipped, None)
        self._acknowledged = number
        sent_us = sent.pop(number, -1)
        if sent_us >= 0:
            self.last_rtt_us = time_us - sent_us
            self.rtt_us += self.last_rtt_us
            self.rtt_samples += 1

    def stop(self, timeouts: int) -> None:
        """Note that the flow is silent from now on."""
        self.active = False
        self.timeouts = timeouts

    @property
    def delivered_packets(self) -> int:
        """Return how many data packets the application got."""
        return self.delivered - (1 if self.syn and self._expected > 0 else 0)

    def delay_quantile_us(self, share: float) -> int:
        """Return the upper edge of the bin that holds this share of delays, at most the longest."""
        rank = share * self.received
        seen = 0
        for where in sorted(self.bins):
            seen += self.bins[where]
            if seen >= rank:
                return min((where + 1) * BIN_US, self.longest_us)
        return self.longest_us

    @staticmethod
    def bytes_or_empty(packets: float, segment_bytes: int) -> str:
        """Return a threshold in bytes, or nothing while there is none."""
        return "" if packets >= UNLIMITED_PACKETS else str(round(packets * segment_bytes))
