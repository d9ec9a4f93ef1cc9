"""How robust a study's verdicts are, for its page: shown only if current results exist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from replication.report.charts.spread import spread_figures
from replication.report.parts.figure import FigureView, write_figures
from replication.report.parts.ledger import plain, plausible
from replication.sensitivity.design_point import ONE_AT_A_TIME
from replication.sensitivity.explore_study import (
    SOURCES,
    RobustnessRows,
    is_current,
    read_made_from,
)
from replication.sensitivity.robustness import claim_sentence
from replication.study.assumption import Assumption, assumptions
from replication.study.claim_model import Claim
from replication.study.sensitivity_settings import Scale, load_sensitivity
from replication.study.storage.table import Row
from replication.study.study import Study
from replication.study.verdict import Verdict


@dataclass(frozen=True)
class EffectView:
    """An assumption and what it does: claims that it flips alone, claims that it decides."""

    key: str
    default: str
    plausible: str
    not_varied: str
    flips: list[str]
    decides: list[str]


@dataclass(frozen=True)
class RobustView:
    """The section.

    Attributes
    ----------
    stale
        Whether results exist that were made from other files; then nothing else is shown.
    engine, engine_note
        What it ran on, and why that is not the paper's own system; empty if it is.
    claims
        Each with its row, which has its word, and the sentence behind that.
    points
        Kind of design point to how many there are.
    engines_compared
        Whether the charts of what varies have other engines too.
    left_out
        Title of each experiment that was not explored, and the claims that need it.
    """

    stale: bool = False
    engine: str = ""
    engine_note: str = ""
    points: tuple[tuple[str, int], ...] = ()
    left_out: tuple[tuple[str, list[str]], ...] = ()
    scale: Scale | None = None
    words: tuple[tuple[str, int], ...] = ()
    claims: tuple[tuple[Claim, Row, str], ...] = ()
    effects: tuple[EffectView, ...] = ()
    figures: tuple[FigureView, ...] = ()
    engines_compared: bool = False


def robust_view(root: Path, data: Path, study: Study, out: Path) -> RobustView | None:
    """Return the section, its figures written below `out`; None where there is nothing to say.

    Parameters
    ----------
    root, data
        The project's folder and that of the results.
    study
        Whose page it is.
    out
        The report's folder.
    """
    folder = data / "sensitivity" / study.id
    if not (folder / "claims.csv").is_file():
        return None
    if not is_current(root, folder, study.id):
        return RobustView(stale=True)
    rows = RobustnessRows.load(folder)
    settings = load_sensitivity(root)
    scale = settings.of(study.id).exploration
    engine = read_made_from(folder)["engine"]
    return RobustView(
        engine=engine,
        engine_note=settings.engine_note(study, engine),
        points=tuple(Counter(row["kind"] for row in rows.points).items()),
        left_out=tuple(_left_out(study, scale)),
        scale=scale,
        words=tuple(Counter(row["word"] for row in rows.claims).most_common()),
        claims=tuple(_claims(study, rows, scale)),
        effects=tuple(_effect(a, rows, settings.of(study.id).held) for a in assumptions(study)),
        figures=tuple(write_figures(spread_figures(rows.spread, study.id), out)),
        engines_compared=bool((rows.spread["source"] == SOURCES["engine"]).any()),
    )


def _claims(study: Study, rows: RobustnessRows, scale: Scale) -> Iterator[tuple[Claim, Row, str]]:
    claims = {claim.id: claim for claim in study.claims}
    for row in rows.claims:
        claim = claims[row["claim"]]
        yield claim, row, claim_sentence(row, claim, scale)


def _left_out(study: Study, scale: Scale) -> Iterator[tuple[str, list[str]]]:
    """Yield the experiments that the exploration leaves out, and the claims that need them."""
    for experiment in study.experiments:
        if scale.experiments is not None and experiment.id not in scale.experiments:
            claims = [
                claim.id
                for claim in study.claims
                if experiment.id in {wanted.experiment for wanted in claim.quantities()}
            ]
            yield experiment.title, claims


def _effect(assumption: Assumption, rows: RobustnessRows, held: Mapping[str, str]) -> EffectView:
    key = assumption.key
    own = [r for r in rows.effects if r["parameter"] == key and r["method"] == ONE_AT_A_TIME]
    flips = dict.fromkeys(
        row["claim"]
        for row in own
        if _holds(row["before"]) != _holds(row["after"])
        and Verdict.NOT_TESTABLE not in (row["before"], row["after"])
    )
    decides = [row["claim"] for row in rows.claims if key in row["important"].split("; ")]
    why = "" if own else held.get(key, "Not varied: no alternative, or an experiment left out.")
    return EffectView(
        key=key,
        default=plain(assumption.default),
        plausible=plausible(assumption.tag, assumption.unit),
        not_varied=why,
        flips=[*flips],
        decides=decides,
    )


def _holds(verdict: str) -> bool:
    return verdict == Verdict.REPRODUCED
