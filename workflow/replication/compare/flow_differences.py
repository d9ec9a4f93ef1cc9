"""Where engines differ on one and the same experiment: data/engine_differences.csv.

`workflow/measurements/differences.py` measures the table. A row holds one metric of one experiment
on one engine, and the generation of the engine that was measured. Two engines differ, or an engine
differs from theory, if a value exceeds the other by more than `LARGEST`; then an entry of
configs/engine_differences.yaml must name the cause.
"""

import fnmatch
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from replication.base.errors import check_known
from replication.base.table import DIFFERENCES, Row
from replication.compare.agreement import EngineDifference
from replication.engines.generation import load_generation

#: A larger difference needs an entry.
LARGEST = 0.25
#: Standard errors by which two counts must differ, as if their events were independent.
_STANDARD_ERRORS = 3
#: Name in a pair of what theory expects.
LAW = "law"
KEY = ("variant", "condition", "metric")


class Shown(NamedTuple):
    """How a metric is shown, and whether it counts events."""

    label: str
    unit: str
    is_count: bool = False


METRICS = {
    "throughput_bps": Shown("throughput", "bit/s"),
    "rtt_s": Shown("round trip", "s"),
    "packets_dropped": Shown("packets dropped", "packets", is_count=True),
    "retransmissions": Shown("retransmissions", "packets", is_count=True),
    "retransmissions_per_loss": Shown("retransmissions per lost packet", "1"),
    "timeouts": Shown("timeouts", "1", is_count=True),
    "startup_window_segments": Shown("window at the end of slow start", "segments"),
    "startup_drops": Shown("packets dropped in start-up", "packets", is_count=True),
    "startup_retransmissions": Shown("retransmissions in start-up", "packets", is_count=True),
    "rate_ratio": Shown("rate of the shorter path over that of the longer", "1"),
    "least_share": Shown("least flow's part of its fair share", "1"),
    "queue_packets": Shown("mean queue", "packets"),
}


def excess(metric: str, value: float, other: float) -> float:
    """Return by how much the larger value exceeds the smaller one: 0.5 is 1.5 times as large.

    Counts that chance can separate do not differ. A count of zero is taken as one.
    """
    check_known("metric", [metric], METRICS)
    low, high = sorted((value, other))
    if METRICS[metric].is_count:
        if high - low <= _STANDARD_ERRORS * math.sqrt(high + low):
            return 0.0
        low = max(low, 1.0)
    return high / low - 1 if low > 0 else math.inf


class Pair(NamedTuple):
    """Two engines, or an engine and `LAW`, and by how much their values differ."""

    sides: tuple[str, str]
    excess: float


def pairs(rows: Sequence[Mapping[str, object]]) -> list[Pair]:
    """Compare the rows of one variant, condition and metric with each other and with theory."""
    metric = str(rows[0]["metric"])
    values = [(str(row["engine"]), float(str(row["value"]))) for row in rows]
    compared = []
    for place, (engine, value) in enumerate(values):
        for other, its_value in values[place + 1 :]:
            compared.append(Pair((engine, other), excess(metric, value, its_value)))
        law = rows[place]["law"]
        if law not in ("", None) and not math.isnan(float(str(law))):
            compared.append(Pair((engine, LAW), excess(metric, value, float(str(law)))))
    return compared


def explains(entry: EngineDifference, row: Mapping[str, object], pair: Pair) -> bool:
    """Return whether an entry is about these rows and says different things of a pair's sides."""
    named = ", ".join(str(row[name]) for name in KEY)
    texts: Mapping[str, str] = {str(engine): text for engine, text in entry.engines.items()}
    left, right = (texts.get(side) for side in pair.sides)
    return left != right and any(fnmatch.fnmatch(named, rows) for rows in entry.found_in)


def compare_rows(rows: Sequence[Row], known: Sequence[EngineDifference]) -> list[str]:
    """Fill in `difference` and `entry` of one group; return its differences without an entry."""
    compared, nameless = pairs(rows), []
    named = ", ".join(rows[0][name] for name in KEY)
    for row in rows:
        excesses = [pair.excess for pair in compared if row["engine"] in pair.sides]
        row["difference"] = f"{max(excesses, default=0.0):.6g}"
    entries = []
    for pair in (pair for pair in compared if pair.excess > LARGEST):
        causes = [entry.id for entry in known if explains(entry, rows[0], pair)]
        entries += [(pair, cause) for cause in causes]
        if not causes:
            sides = " and ".join(pair.sides)
            nameless.append(f"{named}: {sides} differ by {100 * pair.excess:.0f} %")
    for row in rows:
        causes = [cause for pair, cause in entries if row["engine"] in pair.sides]
        row["entry"] = "; ".join(dict.fromkeys(causes))
    return nameless


class Outdated(NamedTuple):
    """Rows of an engine that were not measured with its current generation."""

    engine: str
    rows: int
    measured: tuple[str, ...]
    current: str

    def __str__(self) -> str:
        measured = ", ".join(self.measured)
        return (
            f"{DIFFERENCES}: {self.rows} rows of {self.engine} were measured with generation "
            f"{measured}, the current one is {self.current}; measure them anew: "
            "PYTHONPATH=workflow python -m measurements.differences"
        )


def current_generation(root: Path, engine: str) -> str:
    """Return the name of an engine's listed generation, which does not need its sources."""
    generation = load_generation(root, engine)
    return generation.name if generation is not None else ""


def outdated(root: Path, rows: Sequence[Row]) -> list[Outdated]:
    """Return the engines with rows of another generation than the listed one."""
    stale = []
    for engine in sorted({row["engine"] for row in rows}):
        current = current_generation(root, engine)
        generations = [row["generation"] for row in rows if row["engine"] == engine]
        old = [generation or "unknown" for generation in generations if generation != current]
        if old:
            stale.append(Outdated(engine, len(old), tuple(sorted(set(old))), current))
    return stale
