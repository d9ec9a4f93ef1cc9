"""A small synthetic study and results written for it, so that every expected number is known."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jinja2
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import settings
from measurements.scenarios import cbr, droptail, link
from replication.base.files import read_yaml
from replication.base.table import (
    FLOW_COLUMNS,
    SERIES_COLUMNS,
    SERIES_NUMBERS,
    write_parquet,
)
from replication.design.config import Extent
from replication.design.design import Batch, Run, design_study, write_design
from replication.metrics.cell_map import MappedCell, map_cells
from replication.metrics.collect import load_sampled
from replication.metrics.sampled import SampledResults
from replication.report import render
from replication.report.manifest import RELEASED
from replication.report.pages.page import environment
from replication.study.published import read_published
from replication.study.study import Study
from replication.study.variation import Variation, apply
from replication.verdicts.cell import evaluate_cells
from replication.verdicts.claim import evaluate_claim
from replication.verdicts.sample import Coverage
from replication.verdicts.verdict_table import CellRow, ClaimRow

# Time on a shared machine says nothing about the code.
settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")

# Drawing a chart starts threads in this process. A process forked from it can then hang.
render.ProcessPoolExecutor = lambda workers, **options: ThreadPoolExecutor(1, **options)

#: Templates, which each rendering would compile again.
TEMPLATES = TemporaryDirectory()
COMPILED = jinja2.FileSystemBytecodeCache(TEMPLATES.name)


def _environment(source):
    made = environment(source)
    made.bytecode_cache = COMPILED
    return made


render.environment = _environment

ROOT = Path(__file__).parents[2]
#: The studies of the release, which a newer study joins with the next one.
RELEASED_STUDIES = sorted(path.name for path in (ROOT / RELEASED / "configs/studies").iterdir())
SEGMENT_BYTES = 960
PUBLISHED = {"place": "Table 1"}


def numbers_in(text: str) -> list[int]:
    """Return the whole numbers that a sentence states, in its order."""
    return [int(number) for number in re.findall(r"\d+", text)]


def missing_from(text: object, *facts: object) -> list[str]:
    """Return the facts that a message does not state, such as a file, a field or a value.

    How the message words them is free; `test_messages.py` and `test_sentences.py` are about that.
    """
    return [str(fact) for fact in facts if str(fact) not in str(text)]


def claim(test: dict[str, Any], name: str = "c1", **changes: Any) -> dict[str, Any]:
    return {"id": name, "quote": "q", "place": "p", "reading": "r", "test": test, **changes}


#: A study needs something to judge.
CLAIM = claim({"kind": "not_testable", "reason": "Nothing is claimed."}, "c01")


def quantity(metric: str = "throughput_bps", **where: Any) -> dict[str, Any]:
    return {"experiment": "sweep", "metric": metric, "where": where}


VEGAS, RENO = quantity(variant="vegas"), quantity(variant="reno")
ACCESS = {"slow": 0, "mid": 1, "fast": 2}


def sides(kind: str, **more: Any) -> dict[str, Any]:
    """Return a test of Vegas against Reno."""
    return {"kind": kind, "left": VEGAS, "right": RENO, **more}


def ratio(expect: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return sides("ratio", expect=expect, **changes)


def value_of(of: dict[str, Any], expect: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"kind": "value", "of": of, "expect": expect, **changes}


def at_least(expect: float, direction: float) -> dict[str, Any]:
    return {"expect": {"at_least": expect}, "direction": {"at_least": direction}}


def throughputs(reno: Any = 100.0, vegas: Any = 100.0, cubic: Any = 100.0) -> Any:
    """Return the flows of `World.results`: a rate by variant, or one for each access rate."""
    rates = {"reno": reno, "vegas": vegas, "cubic": cubic}

    def row(variant, access, **_):
        rate = rates[variant]
        return {"throughput_bps": rate[ACCESS[access]] if isinstance(rate, list) else rate}

    return row


def study_document(**changes: Any) -> dict[str, Any]:
    """Two TCP flows over one bottleneck; factors: variant x access rate (slow, mid, fast)."""
    # Through JSON, since parts that share an anchor must not change together.
    document = read_yaml(Path(__file__).parent / "synthetic.yaml")
    return {**json.loads(json.dumps(document)), **changes}


def minimal_scenario() -> dict[str, Any]:
    wire = link("ab", "a", "b", 1e6, 0.01, queue_ab=droptail(50), queue_ba=droptail(50))
    ends = {"source": "a", "destination": "b", "start_s": 0.0, "stop_s": 1.0}
    return {
        "duration_s": 1.0,
        "sampling_interval_s": 0.1,
        "seed": 1,
        "nodes": ["a", "b"],
        "links": [wire],
        "flows": [cbr("f", 1e5, **ends, packet_bytes=500)],
    }


@dataclass
class World:
    """Builds a study and results of it; `flows` and `series` decide every number."""

    folder: Path

    def study(self, **changes: Any) -> Study:
        return Study.model_validate(study_document(**changes))

    def claim(self, test: dict[str, Any], **changes: Any) -> Study:
        return self.study(claims=[claim(test)], **changes)

    def table(self, cells: dict[str, Any] | None = None, **table: Any) -> Study:
        cell = {"metric": "throughput_bps", "aggregate": "sum", "tolerance": tolerance(0.1)}
        shape = {"id": "1", "title": "t", "experiment": "sweep", "where": {"variant": "reno"}}
        shape |= {"row_factor": "access", "columns": cells or {"throughput": cell}}
        return self.study(tables=[{**shape, **table}])

    def published(self, *rows: tuple[str, str, str, float, str]) -> Path:
        """Rows of (row, column, unit, value, printed) of table 1, or with the table first."""
        path = self.folder / "published.csv"
        full = [row if len(row) == 6 else ("1", *row) for row in rows]
        names = ["table", "row", "column", "unit", "value", "printed"]
        pd.DataFrame(full, columns=names).assign(place="p").to_csv(path, index=False)
        return path

    def mapped(self, study: Study, *rows: Any) -> list[MappedCell]:
        """Return the numbers of `published` as cells of the study."""
        return map_cells(study, read_published(self.published(*rows)))

    def judge(self, test: dict[str, Any] | Study, **results: Any) -> ClaimRow:
        """Return the row of the only claim on the first engine."""
        study = test if isinstance(test, Study) else self.claim(test)
        engines = Coverage.of_all(study, self.results(study, **results))
        return evaluate_claim(study.claims[0], engines)[0]

    def judge_cells(self, study: Study, *rows: Any, **results: Any) -> list[CellRow]:
        coverages = Coverage.of_all(study, self.results(study, **results))
        return list(evaluate_cells(self.mapped(study, *rows), coverages, {}))

    def results(
        self,
        study: Study,
        flows=lambda **run: {},
        series=lambda **run: [],
        engines=("ns3",),
        replicates=3,
        runs=lambda levels: True,
        refusal=lambda engine, levels: "",
        duration_s=None,
        textbook="none",
    ) -> SampledResults:
        """Write the results of one batch and load them with their series.

        `flows(engine, replicate, flow, **levels)` overrides columns of a flow's row (None: no
        row); `series(...)` gives a flow's samples; `runs(levels)` says whether a tier has a point.
        """
        count = [{"count": replicates}]
        tier = Extent(levels="all", replicates=count, textbook=textbook)
        if duration_s:
            study = apply(study, Variation(parameters={"duration_s": duration_s}))
        design = []
        for run in designed(study, tier, engines):
            if runs(run.levels):
                design.append(replace(run, refusal=refusal(run.engine, run.levels)))
        ids = [run.scenario_id for run in design]
        batches = [Batch(f"{study.id}-batch", study.id, name, ids, 1.0) for name in engines]
        write_design(design, batches, study.id, self.folder / "design")
        flow_rows, samples = [], []
        for run in design:
            if run.refusal:
                continue
            given = {"engine": run.engine, "replicate": run.replicate, **run.levels}
            key = {"scenario": run.scenario_id, "engine": run.engine}
            for flow in run.scenario.flows:
                row, of_flow = flows(flow=flow.id, **given), {**key, "flow": flow.id}
                if row is not None:
                    flow_rows.append({**FLOW_ROW, "kind": flow.kind, **row, **of_flow})
                samples += [of_flow | sample for sample in series(flow=flow.id, **given)]
            for monitor in run.scenario.monitors:
                name = f"{monitor.link}:{monitor.direction}"
                samples += [{**key, "link": name} | s for s in series(flow=name, **given)]
        flow_table = typed(flow_rows, (*FLOW_COLUMNS, "engine_version"))
        write_parquet(flow_table, self.folder / "results" / study.id / "flows.parquet")
        for name, table in (("flows", flow_table), ("series", typed(samples, SERIES_COLUMNS))):
            write_parquet(table, self.folder / f"batches/{study.id}-batch.{name}.parquet")
        return load_sampled(self.folder, study.id, SERIES_NUMBERS)


DESIGNS: dict[tuple[str, ...], list[Run]] = {}


def designed(study, tier, engines):
    """Return the runs of a study, of which tests change mostly what is judged."""
    key = (study.model_dump_json(exclude={"claims", "tables"}), tier.model_dump_json(), *engines)
    if key not in DESIGNS:
        DESIGNS[key] = design_study(study, tier, list(engines))
    return DESIGNS[key]


def typed(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> pa.Table:
    texts = ("scenario", "engine", "flow", "kind", "link", "engine_version")
    types = [(name, pa.large_string() if name in texts else pa.float64()) for name in columns]
    return pa.Table.from_pylist(rows, pa.schema(types))


FLOW_ROW = {
    "engine_version": "1",
    "throughput_bps": 4e5,
    "goodput_bps": 3.8e5,
    "loss_rate": 8 / 500,
    "delay_mean_s": 0.1,
    "delay_p95_s": 0.12,
    "rtt_mean_s": 0.2,
    "packets_sent": 500,
    "packets_received": 490,
    "packets_dropped": 8,
    "packets_in_flight": 2,
    "retransmissions": 8,
    "timeouts": 0,
    "delivery_ratio": 490 / 500,
}


def tolerance(relative):
    return {"relative": relative, "reason": "usual"}


def sampled(windows, ssthresh=np.nan, **columns):
    """Return windows in segments, and further columns, as samples one second apart."""
    rows = {
        "time_s": np.arange(1.0, len(windows) + 1),
        "cwnd_bytes": np.array(windows) * SEGMENT_BYTES,
        "ssthresh_bytes": np.array(ssthresh) * SEGMENT_BYTES,
        "rtt_s": 1.0,
        "throughput_bps": 1e5,
        **columns,
    }
    return pd.DataFrame(rows).to_dict("records")


@pytest.fixture(scope="module", autouse=True)
def _on_the_wheel():
    """Hide the user's NS3_PREFIX from unit tests, whose projects are incomplete."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("NS3_PREFIX", raising=False)
        yield


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def project(world, tmp_path):
    """A project folder whose report can be rendered."""
    from tests.unit.report_project import Project

    return Project(world, tmp_path / "project")


@pytest.fixture(scope="module")
def shared_project(tmp_path_factory):
    """The same for tests of a module that only read the report."""
    from tests.unit.report_project import Project

    return Project(World(tmp_path_factory.mktemp("world")), tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """A project of the example on one engine, rendered once, to be read."""
    return render_example(tmp_path_factory)


@pytest.fixture(scope="module")
def on_two_engines(tmp_path_factory):
    """The same on two engines with different verdicts."""
    from tests.unit.report_project import faster_on_ns3

    return render_example(tmp_path_factory, engines=("ns3", "ns2"), flows=faster_on_ns3)


def render_example(factory, **results):
    from tests.unit.report_project import Project, example

    made = Project(World(factory.mktemp("world")), factory.mktemp("project"))
    made.add(example(made.world), **results)
    made.render("synthetic")
    return made
