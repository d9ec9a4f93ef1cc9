"""Numbers of the rules that the method page words, from the code that applies them."""

from typing import NamedTuple

from replication.design.textbook import (
    JITTER_SHARE,
    LEAST_PACKETS,
    PACKETS_PER_FLOW,
    WINDOW_FACTOR,
)
from replication.explore.explanation import SIGNIFICANCE
from replication.explore.score import PAYS_BITS
from replication.verdicts.congestion import LEAST_LEFT
from replication.verdicts.published_run import CENTRAL, LEAST_RUNS, PASSING_SHARE


class Rules(NamedTuple):
    """Numbers in words; shares in per cent."""

    passing: str = f"{100 * PASSING_SHARE:g} %"
    central: str = f"{100 * (CENTRAL[1] - CENTRAL[0]):g} %"
    least_runs: int = LEAST_RUNS
    pays_bits: str = f"{PAYS_BITS:g}"
    significance: str = f"{SIGNIFICANCE:g}"
    most_alike: str = f"{100 * (1 - LEAST_LEFT):g} %"
    least_packets: int = LEAST_PACKETS
    packets_per_flow: int = PACKETS_PER_FLOW
    window_factor: int = WINDOW_FACTOR
    jitter: str = f"{100 * JITTER_SHARE:g} %"
