"""The version ladder: which numbers and verdicts change with the version of ns-3 alone.

Every version that is available runs the studies of configs/ladder.yaml: the same scenarios and
seeds, so that whatever differs is the version's doing. The default version is what the others are
compared with.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from replication.engines.catalogue import chosen_engine
from replication.engines.ns3_version import NS3_VERSION, NS3_VERSIONS, missing_packages
from replication.plan.code import code_hash
from replication.plan.pipeline import Paths, Pipeline
from replication.plan.stamp import changed, file_hash, parse_stamp, study_files, write_stamp
from replication.run.progress import count, write_goal
from replication.study.errors import InputError
from replication.study.files import read_model
from replication.study.model import Document, Identifier
from replication.study.storage.seal import read_sealed, write_sealed
from replication.study.storage.table import (
    CELL_COLUMNS,
    CLAIM_COLUMNS,
    LADDER_COLUMNS,
    Row,
    read_rows,
    write_table,
)

SETTINGS = Path("configs/ladder.yaml")
#: Modules that decide a ladder's rows, beside the programs.
MODULES = tuple(
    f"replication.{name}"
    for name in ("plan.design", "run.simulate", "judge.evaluate", "compare.ladder")
)
#: What a value can be beside the default version's, in the order of the report.
SAME, WITHIN, BEYOND, NO_INTERVAL, NOT_RUN, NO_VALUE = (
    "same",
    "within interval",
    "beyond interval",
    "no interval",
    "not run",
    "no value",
)
CHANGES = (SAME, WITHIN, BEYOND, NO_INTERVAL, NOT_RUN, NO_VALUE)
REFERENCE = "reference"
_PROGRAM = "program "
KINDS = ("cell", "claim")


class LadderSettings(Document):
    """configs/ladder.yaml: the tier and the studies that every version runs."""

    tier: Identifier
    studies: Annotated[list[Identifier], Field(min_length=1)]


def load_settings(root: Path) -> LadderSettings:
    """Read configs/ladder.yaml; InputError names each wrong field."""
    return read_model(root / SETTINGS, LadderSettings)


@dataclass(frozen=True)
class Ladder:
    """The plan: a pipeline for each available version, sharing programs and store.

    Attributes
    ----------
    settings
        What every version runs.
    pipelines
        Version to its pipeline.
    missing
        Versions that are not installed.
    """

    settings: LadderSettings
    pipelines: dict[str, Pipeline]
    missing: list[str]
    paths: Paths = field(default_factory=Paths)

    @classmethod
    def load(cls, root: Path) -> Ladder:
        """Plan every version that is available."""
        here = [version for version in NS3_VERSIONS if not missing_packages(version)]
        settings = load_settings(root)
        chosen: dict[str, Any] = {**settings.model_dump(), "engines": ["ns3"]}
        chosen["runtime"] = "native"  # images hold one version
        return cls(
            settings=settings,
            pipelines={v: Pipeline.load(root, chosen | {"ns3_version": v}) for v in here},
            missing=[version for version in NS3_VERSIONS if version not in here],
        )

    def folder(self, version: str) -> Path:
        """Return where the design, results and evaluation of a version are."""
        return self.paths.ladder / version

    @property
    def folders(self) -> list[Path]:
        """Return the data folder of each version."""
        return [self.folder(version) for version in self.pipelines]

    def goal(self) -> dict[Path, dict[str, float]]:
        """Return the expected CPU seconds of each scenario, by the store it goes to."""
        return {
            store: costs for one in self.pipelines.values() for store, costs in one.goal.items()
        }

    def write_goal(self) -> None:
        """Tell the jobs what there is to do, for their progress lines."""
        write_goal(self.paths.goal, self.goal())

    def summary(self) -> list[str]:
        """Return what would run, a line a version, and the expected cost."""
        goal = self.goal()
        what = f"tier {self.settings.tier} of {', '.join(self.settings.studies)}"
        lines = [f"ladder: {what} on each version of ns-3"]
        for version, pipeline in self.pipelines.items():
            done, total, cost_done, cost_total = count(pipeline.goal)
            refused = sum(bool(run.refusal) for runs in pipeline.plan.runs.values() for run in runs)
            lines.append(
                f"  ns-3 {version}: {total} scenarios, {done} of them done"
                + (f", {refused} runs refused" if refused else "")
                + (
                    ""
                    if pipeline.program("ns3").is_file()
                    else ", program to be built (40 s of CPU)"
                )
                + f"; about {cost_total - cost_done:.0f} s of CPU to run"
            )
        for version in self.missing:
            lines.append(f"  ns-3 {version}: left out, not installed (apt-get install libns3-dev)")
        _, _, cost_done, cost_total = count(goal)
        lines.append(f"expected cost: {cost_total - cost_done:.0f} s of CPU for the scenarios")
        return lines


@dataclass(frozen=True)
class Plans:
    """What the files of a data folder follow: this run's plan, or that of a ladder's version."""

    root: Path
    own: Pipeline

    @functools.cached_property
    def ladder(self) -> Ladder:
        """Return the ladder, planned only if it is asked for."""
        return Ladder.load(self.root)

    def of(self, data: str) -> Pipeline:
        """Return the plan of a data folder."""
        folder = Path(data)
        return self.own if folder == self.own.paths.data else self.ladder.pipelines[folder.name]


def write_ladder(root: Path, data: Path, versions: list[str]) -> list[Row]:
    """Compare the evaluations below ``data/ladder`` and write ladder.csv and ladder.json.

    Parameters
    ----------
    root, data
        The project's folder and that of reproduced results.
    versions
        What was run, the default version among them.

    Returns
    -------
    list of dict
        The rows of ladder.csv.
    """
    if NS3_VERSION not in versions:
        raise InputError(f"ladder: the default version {NS3_VERSION} was not run")
    studies = load_settings(root).studies
    found = {version: list(_evaluated(data / "ladder" / version, studies)) for version in versions}
    reference = {key_of(row): row for row in found[NS3_VERSION]}
    rows = [
        {**row, "version": version, **_compare(row, reference[key_of(row)], version)}
        for version in versions
        for row in found[version]
    ]
    write_table(data / "ladder.csv", rows, LADDER_COLUMNS)
    write_sealed(data / "ladder.json", write_stamp(stamp(root, versions)))
    return rows


def read_ladder(root: Path, data: Path) -> tuple[list[Row], bool] | None:
    """Return the rows of ladder.csv and whether the present code would make them so.

    None where no ladder was run.
    """
    # A stamp without its table: the table was lost, and reading it says so.
    if not (data / "ladder.csv").is_file() and not (data / "ladder.json").is_file():
        return None
    rows = read_rows(data / "ladder.csv", LADDER_COLUMNS)
    stamped = data / "ladder.json"
    if not stamped.is_file():
        return rows, False
    made = parse_stamp(read_sealed(stamped))
    versions = [name.removeprefix(_PROGRAM) for name in made if name.startswith(_PROGRAM)]
    known = all(version in NS3_VERSIONS for version in versions)
    return rows, known and not changed(made, stamp(root, versions))


def stamp(root: Path, versions: list[str]) -> dict[str, str]:
    """Return hashes of all that decides the rows of a ladder."""
    settings = load_settings(root)
    inputs = [root / "configs" / "tiers" / f"{settings.tier}.yaml"]
    inputs += [path for study in settings.studies for path in study_files(root, study).values()]
    return {
        **{f"{_PROGRAM}{v}": chosen_engine("ns3", v).fingerprint(root) for v in versions},
        **{path.relative_to(root).as_posix(): file_hash(path) for path in inputs},
        **{f"code {module}": code_hash(module) for module in MODULES},
    }


@dataclass(frozen=True)
class Summary:
    """How many items of one kind differ from the default version's, and how.

    `compared` leaves out what has no value in either and, as `not_run`, in one of them; `changed`
    counts all whose value differs; `beyond` those of them whose 95 % intervals do not overlap;
    `no_interval` those that had too few replicates to say.
    """

    version: str
    kind: str
    compared: int
    changed: int
    beyond: int
    no_interval: int
    flipped: int
    not_run: int

    def sentence(self) -> str:
        """Return the counts in words."""
        return (
            f"ns-3 {self.version}: {self.compared} {self.kind}s compared, "
            f"{self.changed} with another value ({self.beyond} beyond the intervals, "
            f"{self.no_interval} without one), {self.flipped} with another verdict; "
            f"{self.not_run} not run"
        )


def summarise(rows: list[Row]) -> list[Summary]:
    """Count changes by version, of cells first and then of claims."""
    versions = dict.fromkeys(r["version"] for r in rows if r["change"] != REFERENCE)
    return [_summary(version, kind, rows) for version in versions for kind in KINDS]


def is_flip(row: Row) -> bool:
    """Return whether a version that could run an item gives it another verdict."""
    return row["flipped"] == "true" and row["change"] != NOT_RUN


def _summary(version: str, kind: str, rows: list[Row]) -> Summary:
    own = [r for r in rows if r["version"] == version and r["kind"] == kind]
    number = {change: sum(r["change"] == change for r in own) for change in CHANGES}
    return Summary(
        version=version,
        kind=kind,
        compared=len(own) - number[NOT_RUN] - number[NO_VALUE],
        changed=number[WITHIN] + number[BEYOND] + number[NO_INTERVAL],
        beyond=number[BEYOND],
        no_interval=number[NO_INTERVAL],
        flipped=sum(is_flip(r) for r in own),
        not_run=number[NOT_RUN],
    )


def _evaluated(folder: Path, studies: Iterable[str]) -> Iterator[Row]:
    """Yield cells and claims of the studies in the columns that they share."""
    for study in studies:
        own = folder / "evaluation" / study
        for row in read_rows(own / "cells.csv", CELL_COLUMNS):
            place = {name: row[name] for name in ("table", "row", "column")}
            numbers = {n: row[f"reproduced_{n}"] for n in ("mean", "low", "high")}
            yield _item(row, "cell", {**place, "claim": ""}, numbers)
        for row in read_rows(own / "claims.csv", CLAIM_COLUMNS):
            place = {"table": "", "row": "", "column": "", "claim": row["claim"]}
            numbers = {"mean": row["observed"], "low": row["low"], "high": row["high"]}
            yield _item(row, "claim", place, numbers)


def _item(row: Row, kind: str, place: Row, numbers: Row) -> Row:
    return {
        "study": row["study"],
        "kind": kind,
        **place,
        **numbers,
        "unit": row.get("unit", ""),
        "verdict": row["verdict"],
        "reason": row["reason"],
    }


def key_of(row: Row) -> tuple[str, ...]:
    """Return what a row is of, whatever the version."""
    return tuple(row[name] for name in ("study", "kind", "table", "row", "column", "claim"))


def _compare(row: Row, reference: Row, version: str) -> Row:
    if version == NS3_VERSION:
        return {"change": REFERENCE, "flipped": "false"}
    flipped = str(row["verdict"] != reference["verdict"]).lower()
    return {"change": _change(row, reference), "flipped": flipped}


def _change(row: Row, reference: Row) -> str:
    """Say how a value differs; values are the same if all ten digits written are."""
    if not (row["mean"] or reference["mean"]):
        return NO_VALUE
    if row["mean"] == reference["mean"]:
        return SAME
    if not (row["mean"] and reference["mean"]):
        return NOT_RUN
    ends = [row["low"], row["high"], reference["low"], reference["high"]]
    if not all(ends):
        return NO_INTERVAL
    low, high, reference_low, reference_high = map(float, ends)
    return WITHIN if low <= reference_high and reference_low <= high else BEYOND
