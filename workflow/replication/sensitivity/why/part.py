"""Parts of a study: the rows that are scored, and the points that have to be run for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from replication.judge.causes.atom import Explanations, Part
from replication.measure.cell_map import MappedCell
from replication.plan.design import Run
from replication.study.claim_model import covers
from replication.study.study import Study


@dataclass(frozen=True)
class StudyPart:
    """A part of a study that is run: a map's, or a rung of the search, which halves successively.

    Attributes
    ----------
    name
        Its name.
    cells
        Places of its cells among all of the study.
    claims
        Claims that are scored.
    levels
        Experiment to factor to levels that are run; a factor that is left out is run whole.
    """

    name: str
    cells: tuple[int, ...] = ()
    claims: tuple[str, ...] = ()
    levels: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)

    def study(self, study: Study) -> Study:
        """Return the study with the experiments and levels that are run."""
        experiments = []
        for experiment in study.experiments:
            if experiment.id not in self.levels:
                continue
            kept = self.levels[experiment.id]
            factors = [
                factor.model_copy(
                    update={"levels": [v for v in factor.levels if v.key in kept[factor.id]]}
                )
                if factor.id in kept
                else factor
                for factor in experiment.factors
            ]
            experiments.append(experiment.model_copy(update={"factors": factors}))
        return study.model_copy(update={"experiments": experiments})

    def needs(self, run: Run, cells: Sequence[MappedCell]) -> bool:
        """Return whether a run is of one of the points that are scored."""
        if not self.cells:
            return True
        wanted = (cells[place].quantity for place in self.cells)
        return any(q.experiment == run.experiment and covers(q.where, run.levels) for q in wanted)


def rungs(found: Explanations, study: Study, cells: Sequence[MappedCell]) -> list[StudyPart]:
    """Return the rungs of a study's search, the last with all that may be seen."""
    if found.score == "claims":
        hidden = set(found.unseen.claims)
        return [
            StudyPart(f"rung {number}", claims=_claims(rung, study, hidden), levels=rung.levels)
            for number, rung in enumerate(found.rungs)
        ]
    seen = [place for place, cell in enumerate(cells) if not is_unseen(found, cell)]
    stages = [
        _of_cells(f"rung {number}", _in_rows(rung, cells, seen), study, cells)
        for number, rung in enumerate(found.rungs)
    ]
    return [*stages, _of_cells("all seen", seen, study, cells)]


def whole(found: Explanations, study: Study, cells: Sequence[MappedCell]) -> StudyPart:
    """Return all that can be judged, seen or not."""
    if found.score == "claims":
        last = found.rungs[-1]
        return StudyPart("whole", claims=_claims(last, study, set()), levels=last.levels)
    everything = [place for place, cell in enumerate(cells) if not cell.not_comparable]
    return _of_cells("whole", everything, study, cells)


def is_unseen(found: Explanations, cell: MappedCell) -> bool:
    """Return whether a cell is among those that the search must not see."""
    return bool(cell.not_comparable) or cell.row in found.unseen.rows.get(cell.table, [])


def _claims(part: Part, study: Study, hidden: set[str]) -> tuple[str, ...]:
    return tuple(
        claim.id
        for claim in study.claims
        if claim.id not in hidden
        and (quantities := claim.quantities())
        and all(wanted.experiment in part.levels for wanted in quantities)
        and (not part.claims or claim.id in part.claims)
    )


def _in_rows(part: Part, cells: Sequence[MappedCell], seen: Iterable[int]) -> list[int]:
    return [p for p in seen if cells[p].row in part.rows.get(cells[p].table, [])]


def _of_cells(
    name: str, places: Sequence[int], study: Study, cells: Sequence[MappedCell]
) -> StudyPart:
    levels: dict[str, dict[str, set[str]]] = {}
    for place in places:
        wanted = cells[place].quantity
        own = levels.setdefault(wanted.experiment, {})
        for factor in study.experiment(wanted.experiment).factors:
            every = [level.key for level in factor.levels]
            own.setdefault(factor.id, set()).update(wanted.where.get(factor.id, every))
    kept = {e: {f: sorted(keys) for f, keys in own.items()} for e, own in levels.items()}
    return StudyPart(name, cells=tuple(places), levels=kept)
