"""A link of a scenario: its rate and delay, its queues, losses and shapers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from replication.study.model import (
    OFF,
    OPTIONAL,
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

#: HTB keeps no tokens for longer than this (`mbuffer` of sch_htb.c).
MOST_BURST_S = 60.0


class DropTail(Document):
    """Finite FIFO of the outgoing device itself; give packets or bytes, not both."""

    kind: Literal["droptail"] = "droptail"
    limit_packets: Count | None = None
    limit_bytes: Count | None = None

    _one_limit = one_of("limit_packets", "limit_bytes")


class Pfifo(Document):
    """FIFO queue discipline in front of a device queue (RFC-free; Linux `pfifo`)."""

    kind: Literal["pfifo"] = "pfifo"
    limit_packets: Count
    device_queue_packets: Count = 1


class Red(Document):
    """Random Early Detection (Floyd and Jacobson 1993).

    With `byte_mode` the queue is measured, and drops are weighted, in bytes: thresholds and limit
    count packets of `mean_packet_bytes` (ns-2: `queue_in_bytes_` and `bytes_`).
    """

    kind: Literal["red"] = "red"
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
    ecn: bool = OFF
    """Packets of flows with `ecn` are marked where they would be dropped early (RFC 3168)."""

    @model_validator(mode="after")
    def _ordered(self) -> Red:
        if self.minimum_threshold_packets >= self.maximum_threshold_packets:
            raise ValueError("minimum_threshold_packets must be below maximum_threshold_packets")
        return self


class CoDel(Document):
    """Controlled Delay (RFC 8289)."""

    kind: Literal["codel"] = "codel"
    limit_packets: Count
    target_s: PositiveSeconds
    interval_s: PositiveSeconds
    device_queue_packets: Count = 1
    ecn: bool = OFF


class FqCoDel(Document):
    """Flow Queue CoDel (RFC 8290)."""

    kind: Literal["fq_codel"] = "fq_codel"
    limit_packets: Count
    target_s: PositiveSeconds
    interval_s: PositiveSeconds
    buckets: Count = 1024
    quantum_bytes: Count = 1514
    device_queue_packets: Count = 1
    ecn: bool = OFF


class Pie(Document):
    """Proportional Integral controller Enhanced (RFC 8033)."""

    kind: Literal["pie"] = "pie"
    limit_packets: Count
    target_s: PositiveSeconds
    update_interval_s: PositiveSeconds
    mean_packet_bytes: Count = 1000
    device_queue_packets: Count = 1
    ecn: bool = OFF


class FqPie(Document):
    """Flow Queue PIE (Ramakrishnan et al. 2019; Linux `sch_fq_pie`)."""

    kind: Literal["fq_pie"] = "fq_pie"
    limit_packets: Count
    target_s: PositiveSeconds
    update_interval_s: PositiveSeconds
    buckets: Count = 1024
    quantum_bytes: Count = 1514
    device_queue_packets: Count = 1
    ecn: bool = OFF


class Cake(Document):
    """Common Applications Kept Enhanced (Høiland-Jørgensen et al. 2018); the link is its shaper.

    Its limit counts the memory that the kernel holds for its packets, headroom included. The
    default is what it takes itself at rates up to 80 Mbit/s (`cake_reconfigure` of sch_cake.c).
    """

    kind: Literal["cake"] = "cake"
    memory_limit_bytes: Count = 4 << 20
    target_s: PositiveSeconds
    interval_s: PositiveSeconds
    device_queue_packets: Count = 1


Queue = Annotated[
    DropTail | Pfifo | Red | CoDel | FqCoDel | Pie | FqPie | Cake, Field(discriminator="kind")
]


class RandomLoss(Document):
    """Independent loss of each packet that crosses the link direction."""

    kind: Literal["random"] = "random"
    probability: Probability


class ListedLoss(Document):
    """Loss of the n-th data packets of a flow (1 is the first to cross this direction)."""

    kind: Literal["listed"] = "listed"
    flow: Identifier
    data_packets: Annotated[list[Count], Field(min_length=1)]


Loss = Annotated[RandomLoss | ListedLoss, Field(discriminator="kind")]


class TokenBucket(Document):
    """Shaper that pays afterwards, as a class of Linux's HTB does (sch_htb.c, tc-htb(8)).

    Tokens come at the link's `rate_bps`, at most `burst_bytes` of them. A packet goes while there
    is no debt, passes at `line_rate_bps`, and its whole length is taken off, into debt if need be.
    """

    kind: Literal["token_bucket"] = "token_bucket"
    burst_bytes: Count
    line_rate_bps: Rate


class TokenBucketFilter(TokenBucket):
    """Shaper that pays first, as Linux's TBF does (sch_tbf.c, tc-tbf(8)).

    A packet goes when there are tokens for all of it. A merged packet that `burst_bytes` cannot
    hold is cut into its segments before it is queued.
    """

    kind: Literal["tbf"] = "tbf"  # type: ignore[assignment]


Shaper = Annotated[TokenBucket | TokenBucketFilter, Field(discriminator="kind")]


class Link(Document):
    """Duplex point-to-point link; `queue_ab` is the queue at a's egress towards b."""

    id: Identifier
    """Its name."""
    a: Identifier
    """A node."""
    b: Identifier
    """The other node."""
    rate_bps: Annotated[Rate, Field(ge=1)]
    """In each direction."""
    delay_s: Seconds
    """One way."""
    jitter_s: Seconds = Field(default=0, exclude_if=lambda value: value == 0)
    """Each packet's propagation takes up to so much longer, by a uniform draw of its own, but no
    packet overtakes another."""
    frame_bytes: Annotated[int, Field(ge=0, le=255), WHOLE] = Field(
        default=0, exclude_if=lambda value: value == 0
    )
    """What a packet has more than its IP bytes in rates and in limits in bytes; Ethernet as Linux's
    disciplines count it: 14. Results count IP bytes."""
    queue_ab: Queue
    """At a's egress to b."""
    queue_ba: Queue
    """At b's egress to a."""
    loss_ab: Loss | None = None
    """`{kind: random, probability}`, or `{kind: listed, flow, data_packets: [n, ...]}`."""
    loss_ba: Loss | None = None
    """As `loss_ab`, from b to a."""
    shaper_ab: Shaper | None = OPTIONAL
    """`{kind: token_bucket, burst_bytes, line_rate_bps}`: `rate_bps` is then a token bucket's, as
    of Linux's HTB, behind which a packet passes at `line_rate_bps`; `kind: tbf` is Linux's TBF,
    which cuts merged packets that its burst cannot hold. Null: a packet takes its time at
    `rate_bps`, and the next one waits for it."""
    shaper_ba: Shaper | None = OPTIONAL
    """As `shaper_ab`, from b to a."""

    def shaper(self, direction: str) -> Shaper | None:
        """Return what shapes a direction: ab or ba."""
        return self.shaper_ab if direction == "ab" else self.shaper_ba

    def random_loss(self, direction: str) -> float:
        """Return the probability of random loss in a direction: ab or ba."""
        loss = self.loss_ab if direction == "ab" else self.loss_ba
        return loss.probability if isinstance(loss, RandomLoss) else 0.0

    def passing_bps(self, direction: str) -> float:
        """Return the rate at which a packet passes in a direction: of the line behind a shaper."""
        shaper = self.shaper(direction)
        return self.rate_bps if shaper is None else shaper.line_rate_bps

    @model_validator(mode="after")
    def _shapes_something(self) -> Link:
        for shaper, queue in ((self.shaper_ab, self.queue_ab), (self.shaper_ba, self.queue_ba)):
            if shaper is None:
                continue
            if shaper.line_rate_bps < self.rate_bps:
                raise ValueError(f"link {self.id}: a shaper's line_rate_bps is below rate_bps")
            if 8 * shaper.burst_bytes > MOST_BURST_S * self.rate_bps:
                raise ValueError(
                    f"link {self.id}: burst_bytes are more than {MOST_BURST_S:g} s of rate_bps"
                )
            if not isinstance(queue, DropTail) and queue.device_queue_packets != 1:
                raise ValueError(
                    f"link {self.id}: a shaped queue has no device queue: leave "
                    "device_queue_packets out"
                )
        return self
