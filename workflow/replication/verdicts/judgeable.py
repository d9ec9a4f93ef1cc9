"""Judgeable: which numbers and claims a tier can judge on an engine, known before anything runs.

What is judged needs runs of its points that the engine does not refuse, long enough for its window
and for what it counts, and as many as a spread or a number of one run takes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from replication.design.design import Run
from replication.metrics.cell_map import MappedCell
from replication.metrics.metric_model import COUNTS
from replication.metrics.statistic import MINIMUM_REPLICATES
from replication.study.claim_model import NotTestable, Quantity, covers
from replication.study.study import Study
from replication.verdicts.published_run import LEAST_RUNS

#: Sampling times are sums of intervals; an end that rounding moves is no other end.
_SLACK_S = 1e-9


class Judgeable:
    """The runs of a design, against what the numbers and claims of its study need."""

    def __init__(self, study: Study, cells: Sequence[MappedCell], runs: Iterable[Run]) -> None:
        self._study, self._cells = study, cells
        self._runs: dict[tuple[str, str], list[Run]] = defaultdict(list)
        for run in runs:
            self._runs[run.engine, run.experiment].append(run)

    def sentences(self) -> Iterator[str]:
        """Yield for each engine how much it can judge, and why it cannot judge the rest."""
        for engine in dict.fromkeys(engine for engine, _ in self._runs):
            numbers = [self.why_not(engine, [c.quantity], c) for c in self._cells]
            claims = [
                self.why_not(engine, claim.quantities())
                for claim in self._study.claims
                if not isinstance(claim.test, NotTestable)
            ]
            parts, reasons = [], Counter(numbers + claims)
            for name, found in (("numbers", numbers), ("claims", claims)):
                if found:
                    parts.append(f"{found.count('')} of {len(found)} {name}")
            why = "; ".join(f"{n}: {reason}" for reason, n in reasons.most_common() if reason)
            yield f"{engine} can judge {' and '.join(parts)}{f' ({why})' if why else ''}"

    def why_not(
        self, engine: str, quantities: Iterable[Quantity], cell: MappedCell | None = None
    ) -> str:
        """Return why an engine cannot judge what rests on some quantities; empty if it can."""
        return next(filter(None, (self._lack(engine, one, cell) for one in quantities)), "")

    def _lack(self, engine: str, wanted: Quantity, cell: MappedCell | None) -> str:
        own = self._runs[engine, wanted.experiment]
        runs = [run for run in own if covers(wanted.where, run.levels)]
        ran = [run for run in runs if not run.refusal]
        if not ran:
            refusals = Counter(run.refusal for run in runs).most_common(1)
            return refusals[0][0] if refusals else "the tier runs none of the points"
        longest_s = max(run.scenario.duration_s for run in ran)
        if wanted.window_s and longest_s < wanted.window_s[1] - _SLACK_S:
            start_s, stop_s = wanted.window_s
            return f"the window is {start_s:g} to {stop_s:g} s, and runs end at {longest_s:g} s"
        if cell is None:
            return ""
        if cell.not_comparable:
            return "the number is of another thing than its metric"
        if wanted.metric in COUNTS:
            if cut := [run for run in ran if run.scenario.duration_s < run.whole_s - _SLACK_S]:
                ends_s = min(run.scenario.duration_s for run in cut)
                return f"counts are of whole runs, and the tier's end at {ends_s:g} s"
        needed = LEAST_RUNS if cell.cell.tolerance.factor is not None else 1
        needed = MINIMUM_REPLICATES if cell.is_spread else needed
        replicates = min(run.replicates for run in ran)
        few = f"it takes {needed} runs of each point, and there are {replicates}"
        return few if replicates < needed else ""
