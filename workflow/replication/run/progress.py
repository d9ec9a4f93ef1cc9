"""Progress of the simulate stage across jobs: scenarios done, rate, time left."""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from replication.run.store import Store
from replication.study.files import write_text


@dataclass
class Progress:
    """Counts finished scenarios in the stores; prints a line at most every `every_s` seconds."""

    goal: dict[Path, dict[str, float]]
    started: float
    done_at_start_s: float
    every_s: float = 20.0
    _last: float = field(default_factory=time.monotonic)

    @classmethod
    def load(cls, path: Path) -> Progress | None:
        """Read the goal that `write_goal` left, or None where a job runs on its own."""
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            goal = {Path(folder): costs for folder, costs in document["goal"].items()}
            return cls(goal, float(document["started"]), float(document["done_cost_s"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def tick(self, force: bool = False) -> None:
        """Print where the run stands, unless it did so a moment ago."""
        if not force and time.monotonic() - self._last < self.every_s:
            return
        self._last = time.monotonic()
        done, total, cost_done, cost_total = count(self.goal)
        elapsed = max(time.time() - self.started, 1e-3)
        fresh = cost_done - self.done_at_start_s
        left = (
            f", about {_clock((cost_total - cost_done) * elapsed / fresh)} left"
            if fresh > 0
            else ""
        )
        share = cost_done / cost_total if cost_total else 1.0
        print(
            f"simulate: {done} of {total} scenarios ({share:.0%} of the work), "
            f"{done / elapsed:.1f} per s{left}",
            file=sys.stderr,
            flush=True,
        )


def count(goal: dict[Path, dict[str, float]]) -> tuple[int, int, float, float]:
    """Return scenarios done and in all, and their expected CPU seconds."""
    done = total = 0
    cost_done = cost_total = 0.0
    for folder, costs in goal.items():
        finished = costs.keys() & Store(folder).finished()
        done += len(finished)
        total += len(costs)
        cost_done += math.fsum(costs[scenario] for scenario in finished)
        cost_total += math.fsum(costs.values())
    return done, total, cost_done, cost_total


def write_goal(path: Path, goal: dict[Path, dict[str, float]]) -> None:
    """Leave for the jobs of this run what there is to do and what is done already."""
    document = {
        "goal": {str(folder): costs for folder, costs in goal.items()},
        "started": time.time(),
        "done_cost_s": count(goal)[2],
    }
    write_text(path, json.dumps(document))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
