"""Agreement of two engines on the claims and cells of a study.

Two engines agree on an item if both decide it and reach the same verdict. Disagreements are
examined in groups: a claim, or the cells of one column of a table. Both engines run the same
scenario in each replicate, so differences are paired and averaged over the points that both ran.
They exceed run-to-run variation if their 95 % interval excludes zero. Known differences
(configs/engine_differences.yaml) that concern the runs are listed as possible causes.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

import pandas as pd
from pydantic import Field, model_validator

from replication.base.errors import check_known
from replication.base.model import Document, EngineName, Identifier, Text
from replication.base.position import read_model
from replication.base.table import flat, read_design, write_table
from replication.compare.verdicts import CELL, CLAIM, Compared, compare_verdicts, judged_of
from replication.design.config import load_study
from replication.metrics.metric import quantity
from replication.metrics.metric_model import CONTRASTED, METRICS
from replication.metrics.results import Results
from replication.metrics.statistic import Estimate, estimate
from replication.study.claim_model import Quantity, Where, covers
from replication.study.parameter import unique
from replication.study.scenario import CongestionControl
from replication.study.setup import Setup
from replication.study.stated_cause import StatedCause
from replication.study.study import Study
from replication.verdicts.verdict_table import engine_coverage, read_cells, read_claims, runs_under
from replication.verdicts.wording import qualifier

QueueKind = Literal["droptail", "pfifo", "red", "codel", "fq_codel", "pie", "fq_pie", "cake"]

PATH = Path("configs") / "engine_differences.yaml"
#: File names and columns of the tables: all items, and measurements where engines disagree.
TABLES = {
    "agreement_pairs.csv": (
        *("study", "kind", "claim", "table", "row", "column", "left", "right", "setup"),
        *("left_verdict", "right_verdict", "agree", "causes"),
    ),
    "agreement_contrasts.csv": (
        *("study", "group", "left", "right", "setup", "side", "metric", "unit", "left_mean"),
        *("right_mean", "difference", "low", "high", "n", "differs"),
    ),
}


class Concerns(Document):
    """The runs that a difference concerns: one TCP flow has all traits, one queue is listed."""

    congestion_controls: list[CongestionControl] = []
    sack: bool | None = None
    limited_transmit: bool | None = None
    delayed_acks: bool | None = None
    queues: list[QueueKind] = []

    def holds(self, scenario: Mapping[str, Any]) -> bool:
        """Return whether a scenario, given as its JSON document, has the traits."""
        queues = set()
        for link in scenario["links"]:
            queues |= {link["queue_ab"]["kind"], link["queue_ba"]["kind"]}
        if self.queues and queues.isdisjoint(self.queues):
            return False
        return any(flow["kind"] == "tcp" and self._holds_for(flow) for flow in scenario["flows"])

    def _holds_for(self, flow: Mapping[str, Any]) -> bool:
        """Return whether a TCP flow has the traits."""
        controls = self.congestion_controls
        return (
            (not controls or flow["congestion_control"] in controls)
            and self.sack in (None, flow["sack"])
            and self.limited_transmit in (None, flow["limited_transmit"])
            and self.delayed_acks in (None, flow["delayed_ack_segments"] > 1)
        )


class EngineDifference(Document):
    """What each of `engines` does differently; engines with the same text do not differ.

    `shows_in` names the metrics of `CONTRASTED` that the difference would move.
    """

    id: Identifier
    title: Text
    engines: Annotated[dict[EngineName, Text], Field(min_length=2)]
    concerns: Concerns = Concerns()
    shows_in: Annotated[list[Identifier], Field(min_length=1)]
    sources: Annotated[list[Text], Field(min_length=1)]
    found_in: list[Text] = []
    """Rows of data/engine_differences.csv that it causes, as "variant, condition, metric"."""
    causes: list[StatedCause] = []
    """Why engines differ, where `sources` do not say so: needed if all of them are measurements."""

    @model_validator(mode="after")
    def _has_cause(self) -> Self:
        if not self.causes and all(text.startswith("measured on") for text in self.sources):
            raise ValueError(
                f"difference {self.id}: all sources are measurements; name under `causes` an "
                "intervention or a source, or say that it is untested"
            )
        return self

    @model_validator(mode="after")
    def _known_metrics(self) -> Self:
        check_known("shows_in", self.shows_in, CONTRASTED)
        if len(set(self.engines.values())) < 2:
            raise ValueError(f"difference {self.id}: all its engines do the same")
        return self


class EngineDifferences(Document):
    """The document configs/engine_differences.yaml."""

    schema_version: Literal[1]
    differences: list[EngineDifference]

    @model_validator(mode="after")
    def _unique(self) -> Self:
        unique([difference.id for difference in self.differences], "difference")
        return self

    @property
    def by_id(self) -> dict[str, EngineDifference]:
        """The differences by id."""
        return {difference.id: difference for difference in self.differences}

    def concerning(
        self, engines: Sequence[str], scenarios: Sequence[Mapping[str, Any]]
    ) -> list[str]:
        """Return the ids of differences between two engines that concern any of the scenarios."""
        concerning = []
        for difference in self.differences:
            texts = {text for name, text in difference.engines.items() if name in engines}
            if len(texts) == 2 and any(map(difference.concerns.holds, scenarios)):
                concerning.append(difference.id)
        return concerning


def load_differences(root: Path) -> EngineDifferences:
    """Read the known differences of the project in `root`; InputError names a wrong field."""
    return read_model(root / PATH, EngineDifferences)


def _group(pair: Compared) -> tuple[str, object]:
    """Return what is examined together: a claim, or the cells of a table's column."""
    item = pair.item
    name = item[0] if pair.kind == CLAIM else f"{item[0]}: {item[2]}"
    return name, (pair.kind, pair.engines, pair.agrees)


def _row(pair: Compared, causes: str) -> dict[str, object]:
    (left, right), (left_verdict, right_verdict) = pair.engines, pair.verdicts
    is_claim = pair.kind == CLAIM
    table, row, column = ("", "", "") if is_claim else pair.item
    return {
        "study": pair.known.study,
        "kind": pair.kind,
        "claim": pair.item[0] if is_claim else "",
        "table": table,
        "row": row,
        "column": column,
        "left": left,
        "right": right,
        "setup": pair.known.setup,
        "left_verdict": left_verdict,
        "right_verdict": right_verdict,
        "agree": pair.agrees,
        "causes": causes,
    }


def pairs_of(data: Path, study: str, setup: Setup = Setup.DEFAULTS) -> list[Compared]:
    """Return every claim and cell of a study for each pair of engines that ran any point."""
    folder = data / "evaluation" / study
    rows = [judged_of(vars(row)) for row in (*read_claims(folder), *read_cells(folder))]
    design = read_design(data, study)
    by_engine = []
    for name, part in engine_coverage(runs_under(design, setup)).items():
        if part.ran:
            by_engine.append([row for row in rows if row.engine == name and row.setup == setup])
    engines = itertools.combinations(by_engine, 2)
    pairs = flat(compare_verdicts(left, right) for left, right in engines)
    return [pair for pair in pairs if pair.before and pair.after]


class Agreement(NamedTuple):
    """The rows of `TABLES` of one study: items, and measurements where engines disagree."""

    items: list[dict[str, object]]
    measured: list[dict[str, object]]


def agreement_of(root: Path, data: Path, study: Study, results: Results) -> Agreement:
    """Compare the engines on the verdicts of a study in `data` under the results' set-up."""
    known, causes = load_differences(root), dict[object, str]()
    pairs = pairs_of(data, study.id, results.setup)
    measured: list[dict[str, object]] = []
    groups: dict[object, list[Compared]] = {}
    for pair in pairs:
        if pair.agrees is False:
            groups.setdefault(_group(pair), []).append(pair)
    for key, group in groups.items():
        sides = _sides(study, group)
        measured += _contrasts(results, group[0], sides)
        scenarios = flat(_scenarios(results, side, group[0].engines) for side in sides)
        causes[key] = "; ".join(known.concerning(group[0].engines, scenarios))
    return Agreement([_row(pair, causes.get(_group(pair), "")) for pair in pairs], measured)


def agreements_of(root: Path, data: Path, study: Study) -> list[Agreement]:
    """Compare the engines on a study under each set-up."""
    by_setup = Results.load_each(data, study.id)
    return [agreement_of(root, data, study, results) for results in by_setup]


def write_agreement(root: Path, data: Path, studies: Sequence[str]) -> None:
    """Write `TABLES` below `data` for the studies, in the order given."""
    documents = [load_study(root, name) for name in studies]
    write_tables(data, flat(agreements_of(root, data, study) for study in documents))


def write_tables(data: Path, agreements: Sequence[Agreement]) -> None:
    """Write `TABLES` below `data` from the rows of each study under each set-up."""
    for place, (name, columns) in enumerate(TABLES.items()):
        rows = flat(agreement[place] for agreement in agreements)
        write_table(data / name, rows, columns)


class _Side(NamedTuple):
    """Flows over whole runs at points that items rest on; the label is unique in a group."""

    label: str
    whole: Quantity
    wheres: list[Where]


def _sides(study: Study, pairs: Sequence[Compared]) -> list[_Side]:
    texts = flat(pair.known.quantities for pair in pairs)
    rested_on = [Quantity.model_validate_json(text) for text in texts]
    shared = _shared([wanted.where for wanted in rested_on])
    sides: dict[tuple[str, str, str], _Side] = {}
    for wanted in rested_on:
        experiment, flows = wanted.experiment, wanted.flows
        where = shared if pairs[0].kind == CELL else wanted.where
        # Engines are compared over whole runs, by the mean over flows.
        whole = Quantity(experiment=experiment, metric=CONTRASTED[0], flows=flows, where=where)
        label = qualifier(study, whole) or "all points"
        key = label, experiment, str(flows)
        side = sides.setdefault(key, _Side(label, whole, []))
        if wanted.where not in side.wheres:
            side.wheres.append(wanted.where)
    return list(sides.values())


def _shared(wheres: Sequence[Where]) -> Where:
    """Return the levels that all have."""
    shared = dict(wheres[0]) if wheres else {}
    for where in wheres:
        shared = {factor: keys for factor, keys in shared.items() if where.get(factor) == keys}
    return shared


def _contrasts(
    results: Results, first: Compared, sides: Sequence[_Side]
) -> Iterator[dict[str, object]]:
    """Yield a row for each metric that both engines have at points that both ran."""
    (name, _), (left, right) = _group(first), first.engines
    for side, metric in itertools.product(sides, CONTRASTED):
        wanted = side.whole.model_copy(update={"metric": metric, "where": {}})
        values = quantity(results, wanted).dropna(subset="value")
        points = ({str(k): v for k, v in row.items()} for row in values.to_dict("records"))
        kept = [any(covers(where, point) for where in side.wheres) for point in points]
        values = values.loc[kept]
        keys = [column for column in values if column not in ("engine", "value")]
        both = values.pivot(index=keys, columns="engine", values="value")
        both = both.reindex(columns=[left, right]).dropna()
        if both.empty:
            continue
        means = both.groupby("replicate").mean()
        difference = estimate((means[right] - means[left]).to_numpy())
        left_mean, right_mean = (float(means[engine].mean()) for engine in (left, right))
        yield {
            "study": first.known.study,
            "group": name,
            "left": left,
            "right": right,
            "setup": first.known.setup,
            "side": side.label,
            "metric": metric,
            "unit": METRICS[metric].unit,
            "left_mean": left_mean,
            "right_mean": right_mean,
            "difference": difference.mean,
            "low": difference.low,
            "high": difference.high,
            "n": difference.n,
            "differs": _excludes_zero(difference),
        }


def _excludes_zero(difference: Estimate) -> bool | None:
    """Return whether the interval excludes zero; None without an interval."""
    return None if pd.isna(difference.low) else not difference.low <= 0 <= difference.high


def _scenarios(results: Results, side: _Side, engines: tuple[str, str]) -> list[Mapping[str, Any]]:
    """Return the scenarios at points that both engines ran; substitutions make them differ."""
    runs = pd.concat(results.runs(side.whole.experiment, where) for where in side.wheres)
    ran = runs[runs["supported"] & runs["engine"].isin(engines)]
    both = ran.groupby(["point", "replicate"])["engine"].transform("nunique") == 2
    return [results.scenarios[name] for name in sorted(set(ran.loc[both, "scenario"]))]
