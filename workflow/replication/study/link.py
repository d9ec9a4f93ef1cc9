"""Links of a scenario: rates, delays, queues, losses and shapers."""

import math
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from replication.base.model import (
    WHOLE,
    Count,
    Document,
    Identifier,
    PositiveSeconds,
    Probability,
    Rate,
    Seconds,
    one_of,
)
from replication.study.progression import Progression, expanded

#: Longest time for which HTB keeps tokens (`mbuffer` of sch_htb.c).
_MOST_BURST_S = 60.0


class DropTail(Document):
    """FIFO of the outgoing device, with a limit in packets or in bytes."""

    kind: Literal["droptail"]
    limit_packets: Count | None = None
    limit_bytes: Count | None = None

    _one_limit = one_of("limit_packets", "limit_bytes")


class Pfifo(Document):
    """FIFO queue discipline in front of a device queue (Linux `pfifo`)."""

    kind: Literal["pfifo"]
    limit_packets: Count
    device_queue_packets: Count = 1


class Red(Document):
    """Random Early Detection (Floyd and Jacobson 1993).

    In `byte_mode` the queue is measured and drops are weighted in bytes; thresholds and limit count
    packets of `mean_packet_bytes` (ns-2: `queue_in_bytes_` and `bytes_`).
    """

    kind: Literal["red"]
    limit_packets: Count
    minimum_threshold_packets: Annotated[float, Field(ge=0, le=1e9)]
    maximum_threshold_packets: Annotated[float, Field(gt=0, le=1e9)]
    queue_weight: Annotated[float, Field(gt=0, le=1)]
    maximum_probability: Annotated[float, Field(gt=0, le=1)]
    mean_packet_bytes: Count
    gentle: bool = True
    byte_mode: bool = False
    wait: bool = True
    device_queue_packets: Count = 1
    ecn: bool = False
    """Mark packets of flows with `ecn` instead of dropping them early (RFC 3168)."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.minimum_threshold_packets >= self.maximum_threshold_packets:
            raise ValueError("minimum_threshold_packets must be below maximum_threshold_packets")
        return self


class CoDel(Document):
    """Controlled Delay (RFC 8289)."""

    kind: Literal["codel"]
    limit_packets: Count
    target_s: PositiveSeconds
    interval_s: PositiveSeconds
    device_queue_packets: Count = 1
    ecn: bool = False


class FqCoDel(Document):
    """Flow Queue CoDel (RFC 8290)."""

    kind: Literal["fq_codel"]
    limit_packets: Count
    target_s: PositiveSeconds
    interval_s: PositiveSeconds
    buckets: Count = 1024
    quantum_bytes: Count = 1514
    device_queue_packets: Count = 1
    ecn: bool = False


class Pie(Document):
    """Proportional Integral controller Enhanced (RFC 8033)."""

    kind: Literal["pie"]
    limit_packets: Count
    target_s: PositiveSeconds
    update_interval_s: PositiveSeconds
    mean_packet_bytes: Count = 1000
    device_queue_packets: Count = 1
    ecn: bool = False


class FqPie(Document):
    """Flow Queue PIE (Ramakrishnan et al. 2019; Linux `sch_fq_pie`)."""

    kind: Literal["fq_pie"]
    limit_packets: Count
    target_s: PositiveSeconds
    update_interval_s: PositiveSeconds
    buckets: Count = 1024
    quantum_bytes: Count = 1514
    device_queue_packets: Count = 1
    ecn: bool = False


class Cake(Document):
    """Common Applications Kept Enhanced (Høiland-Jørgensen et al. 2018); the link is its shaper.

    Its limit is kernel memory, including the headroom of packets. The default is that of CAKE at
    rates up to 80 Mbit/s (`cake_reconfigure` of sch_cake.c).
    """

    kind: Literal["cake"]
    memory_limit_bytes: Count = 4 << 20
    target_s: PositiveSeconds
    interval_s: PositiveSeconds
    device_queue_packets: Count = 1


Queue = Annotated[
    DropTail | Pfifo | Red | CoDel | FqCoDel | Pie | FqPie | Cake, Field(discriminator="kind")
]


class RandomLoss(Document):
    """Independent random loss of packets in one direction of a link."""

    kind: Literal["random"]
    probability: Probability


class ListedLoss(Document):
    """Loss of the n-th data packets of a flow, counted from 1 in one direction of a link."""

    kind: Literal["listed"]
    flow: Identifier
    data_packets: Annotated[
        list[Count],
        BeforeValidator(expanded, json_schema_input_type=list[Count] | Progression),
        Field(min_length=1),
    ]
    """List of numbers, or `{first, step, count}`."""


Loss = Annotated[RandomLoss | ListedLoss, Field(discriminator="kind")]


class TokenBucket(Document):
    """Token bucket that may go into debt, as a class of Linux's HTB (sch_htb.c, tc-htb(8)).

    It fills at the link's `rate_bps`, up to `burst_bytes`. Without debt a packet is sent at
    `line_rate_bps`, and its length is subtracted.
    """

    kind: Literal["token_bucket"]
    burst_bytes: Count
    line_rate_bps: Rate


class TokenBucketFilter(TokenBucket):
    """Token bucket without debt, as Linux's TBF (sch_tbf.c, tc-tbf(8)).

    A packet is sent when there are tokens for all of it. A merged packet larger than `burst_bytes`
    is cut into its segments before it is queued.
    """

    kind: Literal["tbf"]  # type: ignore[assignment]


def _in_order(milliseconds: list[int]) -> list[int]:
    for before, after in pairwise(milliseconds):
        if after < before:
            raise ValueError(f"{after} follows {before}; the times must not decrease")
    if milliseconds[-1] == 0:
        raise ValueError("the last time must be above 0, since the series starts again then")
    return milliseconds


#: IP bytes that may leave at an opportunity.
OPPORTUNITY_BYTES = 1500
#: Most opportunities of a series.
MOST_OPPORTUNITIES = 1_000_000
_Milliseconds = Annotated[int, Field(ge=0, le=1_000_000_000)]
#: Times of opportunities to send, as in the trace files of Mahimahi's mm-link(1).
Opportunities = Annotated[
    list[_Milliseconds],
    Field(min_length=1, max_length=MOST_OPPORTUNITIES),
    AfterValidator(_in_order),
]


#: A path without `..` or hidden folders.
_PATH = r"^[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)*$"


class SeriesFile(Document):
    """Series of opportunities in a file (`study/series.py`), and the file's hash."""

    file: Annotated[str, Field(max_length=255, pattern=_PATH)]
    """Path below the project's folder, of a text or of one that xz compressed."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """Hash of the file, as `sha256sum` prints it."""


def _series_form(series: Any) -> str:
    return "list" if isinstance(series, list) else "file"


Series = Annotated[
    Annotated[Opportunities, Tag("list")] | Annotated[SeriesFile, Tag("file")],
    Discriminator(_series_form),
]


class LinkChange(Document):
    """New values of a link from a time on; null: as before."""

    at_s: PositiveSeconds
    rate_bps: Annotated[Rate, Field(ge=1)] | None = None
    delay_s: Seconds | None = None
    loss_ab: Probability | None = None
    """Probability of random loss."""
    loss_ba: Probability | None = None
    """Probability of random loss from b to a."""

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.model_dump(exclude={"at_s"}, exclude_none=True):
            raise ValueError("changes nothing: give rate_bps, delay_s, loss_ab or loss_ba")
        return self


Shaper = Annotated[TokenBucket | TokenBucketFilter, Field(discriminator="kind")]


class Link(Document):
    """Duplex point-to-point link between nodes `a` and `b`; `_ab` is the direction from a to b."""

    id: Identifier
    a: Identifier
    b: Identifier
    rate_bps: Annotated[Rate, Field(ge=1)]
    """Rate in each direction."""
    delay_s: Seconds
    """One-way propagation delay."""
    jitter_s: Seconds = 0.0
    """Largest extra delay of a packet, drawn uniformly; packets stay in order."""
    frame_bytes: Annotated[int, Field(ge=0, le=255), WHOLE] = 0
    """Bytes per packet that rates and limits in bytes count in addition to its IP bytes; 14 for
    Ethernet as Linux counts it. Results count IP bytes."""
    queue_ab: Queue
    """Queue of a's interface to b."""
    queue_ba: Queue
    """Queue of b's interface to a."""
    loss_ab: Loss | None = None
    """`{kind: random, probability}`, or `{kind: listed, flow, data_packets: [n, ...]}`; evenly
    spaced losses are `data_packets: {first, step, count}`."""
    loss_ba: Loss | None = None
    """Loss from b to a."""
    shaper_ab: Shaper | None = None
    """`{kind: token_bucket, burst_bytes, line_rate_bps}`, as Linux's HTB, or `kind: tbf`, as its
    TBF: `rate_bps` is the token rate, and packets are sent at `line_rate_bps`. Null: packets are
    sent at `rate_bps`."""
    shaper_ba: Shaper | None = None
    """Shaper from b to a."""
    changes: list[LinkChange] = []
    """`{at_s, rate_bps, delay_s, loss_ab, loss_ba}` each: values that the link takes at a time."""
    opportunities_ab: Series | None = None
    """Opportunities to send, in Mahimahi's format: times in whole milliseconds, at each of which
    1500 bytes may leave. After the last the series starts again. A list, or `{file, sha256}` of a
    file with one a line. It replaces `rate_bps`, by which costs are still estimated."""
    opportunities_ba: Series | None = None
    """Opportunities to send from b to a."""

    def shaper(self, direction: str) -> Shaper | None:
        """Return the shaper of a direction, ab or ba."""
        return self.shaper_ab if direction == "ab" else self.shaper_ba

    def opportunities(self, direction: str) -> list[int] | SeriesFile | None:
        """Return the opportunities to send in a direction, ab or ba."""
        return self.opportunities_ab if direction == "ab" else self.opportunities_ba

    def random_loss(self, direction: str) -> float:
        """Return the probability of random loss in a direction, ab or ba."""
        loss = self.loss_ab if direction == "ab" else self.loss_ba
        return loss.probability if isinstance(loss, RandomLoss) else 0.0

    def loss_rate(self, direction: str) -> float:
        """Return the share of packets that is lost in a direction, until the last listed one."""
        loss = self.loss_ab if direction == "ab" else self.loss_ba
        if isinstance(loss, ListedLoss):
            return len(loss.data_packets) / max(loss.data_packets)
        return self.random_loss(direction)

    @property
    def is_constant(self) -> bool:
        """Whether rate and delay stay as they are, and there are no opportunities."""
        return not (self.changes or self.opportunities_ab or self.opportunities_ba)

    @property
    def rates_bps(self) -> list[float]:
        """The rates that the link takes, in order."""
        changed = [change.rate_bps for change in self.changes if change.rate_bps is not None]
        return [self.rate_bps, *changed]

    @property
    def peak_bps(self) -> float:
        """The highest rate that the link takes."""
        return max(self.rates_bps)

    @property
    def delay_range_s(self) -> tuple[float, float]:
        """The least and the longest propagation delay that the link takes, without jitter."""
        delays_s = [c.delay_s for c in self.changes if c.delay_s is not None]
        return min([self.delay_s, *delays_s]), max([self.delay_s, *delays_s])

    def passing_bps(self, direction: str) -> float:
        """Return the highest rate at which packets are sent in a direction, ab or ba.

        It is infinite with opportunities, where packets leave at once.
        """
        if self.opportunities(direction) is not None:
            return math.inf
        shaper = self.shaper(direction)
        return self.peak_bps if shaper is None else shaper.line_rate_bps

    @model_validator(mode="after")
    def _shapes_something(self) -> Self:
        for way, queue in (("ab", self.queue_ab), ("ba", self.queue_ba)):
            shaper = self.shaper(way)
            if shaper is None and self.opportunities(way) is None:
                continue
            if not isinstance(queue, DropTail) and queue.device_queue_packets != 1:
                kind = "a shaped queue" if shaper else "a queue with opportunities"
                raise ValueError(f"link {self.id}: {kind} has no device_queue_packets")
            if shaper is None:
                continue
            if shaper.line_rate_bps < self.rate_bps:
                raise ValueError(f"link {self.id}: a shaper's line_rate_bps is below rate_bps")
            if 8 * shaper.burst_bytes > _MOST_BURST_S * self.rate_bps:
                raise ValueError(
                    f"link {self.id}: burst_bytes exceed {_MOST_BURST_S:g} s of rate_bps"
                )
        return self

    @model_validator(mode="after")
    def _can_change(self) -> Self:
        for before, after in pairwise(self.changes):
            if after.at_s <= before.at_s:
                raise ValueError(f"link {self.id}: changes must be in the order of their at_s")
        changed: set[str] = set()
        for change in self.changes:
            changed |= {key for key, value in change if value is not None}
        for way in ("ab", "ba"):
            series, shaper = self.opportunities(way), self.shaper(way)
            if series and (shaper or self.frame_bytes):
                key = f"shaper_{way}" if shaper else "frame_bytes"
                raise ValueError(f"link {self.id}: opportunities_{way} make no use of {key}")
            if "rate_bps" in changed and (series or shaper):
                key = f"opportunities_{way}" if series else f"shaper_{way}"
                raise ValueError(f"link {self.id}: rate_bps cannot change, since it has {key}")
            loss = self.loss_ab if way == "ab" else self.loss_ba
            if f"loss_{way}" in changed and isinstance(loss, ListedLoss):
                raise ValueError(f"link {self.id}: loss_{way} cannot change, since it is listed")
        return self
