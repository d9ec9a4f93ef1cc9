"""Robustness: in how many of the plausible designs a claim holds, and the range a cell reaches.

A claim *holds* at a design point where its verdict there is `reproduced`. Of the space-filling
points at which it can be tested it holds in a share, given with Wilson's interval as if the points
were a random sample (a Sobol' design covers the space more evenly, so the interval is wide rather
than narrow). The words: robust, conditional, fragile. None of them is given to a claim that so few
designs can test that not even unanimity would show it: with bounds of 90 and 10 % that is below 35.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from replication.measure.statistic import wilson_interval
from replication.sensitivity.design import PointRecord, SensitivityDesign
from replication.sensitivity.design_point import DEFAULT, ONE_AT_A_TIME, SEED, SPACE_FILLING
from replication.study.sensitivity_settings import Sensitivity
from replication.study.verdict import Verdict

ROBUST = "robust"
CONDITIONAL = "conditional"
FRAGILE = "fragile"
TOO_FEW = "too few designs"

CLAIM_ROBUSTNESS = (
    "study",
    "claim",
    "engine",
    "verdict_tier",
    "verdict_default",
    "reduced_scale_differs",
    "seeds",
    "seeds_alike",
    "designs",
    "holds",
    "share",
    "low",
    "high",
    "share_direction",
    "word",
    "tested_alone",
    "flipped_by",
    "important",
    "r2",
)
CELL_ROBUSTNESS = (
    "study",
    "table",
    "row",
    "column",
    "engine",
    "unit",
    "published",
    "verdict_tier",
    "default",
    "inside_default",
    "seed_low",
    "seed_high",
    "designs",
    "lowest",
    "highest",
    "published_in_range",
    "share_inside",
)


@dataclass(frozen=True)
class Share:
    """How many of some designs hold, with Wilson's 95 % interval; NaN where there is none."""

    holds: int
    designs: int

    @property
    def share(self) -> float:
        """Return the share."""
        return self.holds / self.designs if self.designs else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Return the interval."""
        return wilson_interval(self.holds, self.designs) if self.designs else (math.nan, math.nan)

    def word(self, settings: Sensitivity) -> str:
        """Return robust, conditional, fragile, too few designs or not testable."""
        if not self.designs:
            return Verdict.NOT_TESTABLE
        if not can_tell(self.designs, settings):
            return TOO_FEW
        if self.share >= settings.robust_at_least:
            return ROBUST
        return FRAGILE if self.share <= settings.fragile_at_most else CONDITIONAL


def can_tell(designs: int, settings: Sensitivity) -> bool:
    """Return whether unanimous designs would put Wilson's interval beyond either bound."""
    return (
        wilson_interval(designs, designs)[0] >= settings.robust_at_least
        and wilson_interval(0, designs)[1] <= settings.fragile_at_most
    )


@dataclass(frozen=True)
class Flip:
    """A single change of an assumption that makes a claim hold or no longer hold."""

    parameter: str
    value: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.parameter} = {self.value}"


class Verdicts:
    """The verdicts of a study at its design points, and the points themselves."""

    def __init__(
        self, design: SensitivityDesign, claims: pd.DataFrame, cells: pd.DataFrame
    ) -> None:
        self.design = design
        self.kinds = {point.id: point.kind for point in design.points}
        self.claims = claims.assign(kind=claims["point"].map(self.kinds))
        self.cells = cells.assign(kind=cells["point"].map(self.kinds))

    def claim(self, claim: str, *kinds: str) -> dict[str, str]:
        """Return the verdicts on a claim at the points of some kinds, by point."""
        rows = self.claims[(self.claims["claim"] == claim) & self.claims["kind"].isin(kinds)]
        return dict(zip(rows["point"], rows["verdict"], strict=True))

    def flips(self, claim: str) -> list[Flip]:
        """Return the single changes that flip a claim between holding and not holding."""
        default = self.claim(claim, DEFAULT).get("default", Verdict.NOT_TESTABLE)
        after = self.claim(claim, ONE_AT_A_TIME)
        return [
            Flip(point.changed, _text(point.values[point.changed]), default, after[point.id])
            for point in self.design.of(ONE_AT_A_TIME)
            if Verdict.NOT_TESTABLE not in (default, after.get(point.id, Verdict.NOT_TESTABLE))
            and (default == Verdict.REPRODUCED) != (after[point.id] == Verdict.REPRODUCED)
        ]

    def tested_alone(self, claim: str) -> int:
        """Return how many single changes decide a claim."""
        return sum(v != Verdict.NOT_TESTABLE for v in self.claim(claim, ONE_AT_A_TIME).values())

    def share(self, claim: str) -> Share:
        """Return in how many space-filling designs a claim holds, of those that can test it."""
        verdicts = [
            v for v in self.claim(claim, SPACE_FILLING).values() if v != Verdict.NOT_TESTABLE
        ]
        return Share(verdicts.count(Verdict.REPRODUCED), len(verdicts))


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def claim_rows(
    verdicts: Verdicts,
    settings: Sensitivity,
    tier: Mapping[str, str],
    importances: Mapping[str, tuple[float, list[str]]],
) -> Iterator[dict[str, object]]:
    """Yield a row for each claim.

    Parameters
    ----------
    verdicts, settings
        What was judged, and what the words mean.
    tier
        The verdicts of the tier that the report shows, by claim; empty where none was run.
    importances
        Explained variance on unseen points, and the parameters that matter, by claim.
    """
    for claim in dict.fromkeys(verdicts.claims["claim"]):
        default = verdicts.claim(claim, DEFAULT).get("default", Verdict.NOT_TESTABLE)
        seeds = list(verdicts.claim(claim, DEFAULT, SEED).values())
        share = verdicts.share(claim)
        tested = [
            v for v in verdicts.claim(claim, SPACE_FILLING).values() if v != Verdict.NOT_TESTABLE
        ]
        right = sum(v in (Verdict.REPRODUCED, Verdict.DIRECTION_ONLY) for v in tested)
        r2, important = importances.get(claim, (math.nan, []))
        yield {
            "study": verdicts.design.study,
            "claim": claim,
            "engine": verdicts.design.engine,
            "verdict_tier": tier.get(claim, ""),
            "verdict_default": default,
            "reduced_scale_differs": claim in tier and tier[claim] != default,
            "seeds": len(seeds),
            "seeds_alike": seeds.count(default),
            "designs": share.designs,
            "holds": share.holds,
            "share": share.share,
            "low": share.interval[0],
            "high": share.interval[1],
            "share_direction": right / len(tested) if tested else math.nan,
            "word": share.word(settings),
            "tested_alone": verdicts.tested_alone(claim),
            "flipped_by": "; ".join(str(flip) for flip in verdicts.flips(claim)),
            "important": "; ".join(important),
            "r2": r2,
        }


def cell_rows(
    verdicts: Verdicts, tier: Mapping[tuple[str, str, str], str]
) -> Iterator[dict[str, object]]:
    """Yield a row for each published number under the study's own reading.

    The range is over all designs: the defaults, one at a time and space filling.
    """
    explored = (DEFAULT, SEED, ONE_AT_A_TIME, SPACE_FILLING)
    cells = verdicts.cells
    cells = cells[cells["kind"].isin(explored)]
    for key, group in cells.groupby(["table", "row", "column"], sort=False):
        found = group[group["value"].notna() & (group["verdict"] != Verdict.NOT_TESTABLE)]
        seeds = found.loc[found["kind"].isin((DEFAULT, SEED)), "value"]
        first = found[found["kind"] == DEFAULT]
        filled = found.loc[found["kind"] == SPACE_FILLING, "inside"]
        published = float(group["published"].iloc[0])
        low, high = found["value"].min(), found["value"].max()
        table, row, column = (str(part) for part in key)
        yield {
            "study": verdicts.design.study,
            "table": table,
            "row": row,
            "column": column,
            "engine": verdicts.design.engine,
            "unit": group["unit"].iloc[0],
            "published": published,
            "verdict_tier": tier.get((table, row, column), ""),
            "default": float(first["value"].iloc[0]) if len(first) else math.nan,
            "inside_default": bool(first["inside"].iloc[0]) if len(first) else None,
            "seed_low": float(seeds.min()),
            "seed_high": float(seeds.max()),
            "designs": len(found),
            "lowest": float(low),
            "highest": float(high),
            "published_in_range": bool(low <= published <= high) if len(found) else None,
            "share_inside": float(filled.astype(bool).mean()) if len(filled) else math.nan,
        }


def point_rows(design: SensitivityDesign) -> Iterator[dict[str, object]]:
    """Yield a row for each design point."""
    for point in design.points:
        yield {
            "study": design.study,
            "point": point.id,
            "kind": point.kind,
            "changed": point.changed,
            "values": json.dumps(point.values, sort_keys=True),
            "engine": design.engine,
            "scenarios": _ran(point),
            "refused": len(point.runs) - _ran(point),
            "reason": point.refusal or "; ".join(sorted({r.refusal for r in point.runs} - {""})),
        }


POINT_COLUMNS = (
    "study",
    "point",
    "kind",
    "changed",
    "values",
    "engine",
    "scenarios",
    "refused",
    "reason",
)


def _ran(point: PointRecord) -> int:
    return sum(not run.refusal for run in point.runs)
