"""A small synthetic study and results written for it, so that every expected number is known."""

import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from replication.metrics.collect import load_sampled
from replication.metrics.sampled import SampledResults
from replication.study.files import atomic, write_text
from replication.study.parameter import plain_values
from replication.study.storage.table import FLOW_COLUMNS, SERIES_COLUMNS, SERIES_NUMBERS
from replication.study.study import Study, parameters_of
from replication.study.template import instantiate, replicate_seed

from tests.engines.engine_scenarios import droptail, link, tcp

# Time on a shared machine says nothing about the code.
settings.register_profile("shared machine", deadline=None)
settings.load_profile("shared machine")

BOTTLENECK_BPS = 1e6
BOTTLENECK_DELAY_S = 0.05
SEGMENT_BYTES = 960  # with 40 bytes of headers a packet takes 8 ms at the bottleneck
DURATION_S = 10.0

PUBLISHED = {"place": "Table 1"}
ASSUMED = {"reason": "not stated", "source": "habit", "choices": None}


def parameter(value, published=True):
    if published:
        return {"value": value, "published": PUBLISHED}
    return {"value": value, "assumed": {**ASSUMED, "choices": [value], "range": None}}


def access(name, a, b):
    return wire(name, a, b, "$access_bps", "$access_s")


def wire(name, a, b, rate, delay):
    return link(name, a, b, rate, delay, queue_ab=droptail(20), queue_ba=droptail(20))


def flow(number):
    ends = {"source": f"s{number}", "destination": f"d{number}", "stop_s": "$duration_s"}
    own = {"segment_bytes": "$segment_bytes", "initial_window_segments": 2}
    timers = {"minimum_rto_s": 0.2, "initial_rto_s": 1.0}
    return tcp(f"tcp{number}", "$congestion_control", **ends, **own, **timers)


#: A study must have something to judge.
CLAIM = {
    "id": "c01",
    "quote": "Nothing.",
    "place": "nowhere",
    "reading": "Nothing is claimed.",
    "test": {"kind": "not_testable", "reason": "Nothing is claimed."},
}


def study_document(**changes: Any) -> dict[str, Any]:
    """Two TCP flows over one bottleneck; factors: variant x access rate (slow, mid, fast)."""
    variants = [
        {"key": key, "label": key, "set": {"congestion_control": key}}
        for key in ("reno", "vegas", "cubic")
    ]
    rates = [
        {"key": key, "label": key, "value": value, "set": {"access_bps": value * 1e6}}
        for key, value in (("slow", 10.0), ("mid", 20.0), ("fast", 30.0))
    ]
    experiment = {
        "id": "sweep",
        "type": "homogeneous_dumbbell",
        "title": "Sweep",
        "question": "Which?",
        "place": "Section 1",
        "factors": [
            {"id": "variant", "label": "Variant", "published": PUBLISHED, "levels": variants},
            {"id": "access", "label": "Access rate", "published": PUBLISHED, "levels": rates},
        ],
        "topology": {
            "nodes": ["s1", "s2", "left", "right", "d1", "d2"],
            "links": [
                *(access(f"in{n}", f"s{n}", "left") for n in (1, 2)),
                wire("bottleneck", "left", "right", "$bottleneck_bps", "$bottleneck_s"),
                *(access(f"out{n}", "right", f"d{n}") for n in (1, 2)),
            ],
            "monitors": [{"link": "bottleneck", "direction": "ab"}],
        },
        "flows": [flow(1), flow(2)],
        "duration_s": "$duration_s",
        "sampling_interval_s": 1.0,
    }
    document = {
        "id": "synthetic",
        "title": "Synthetic",
        "bibliography": {"title": "Synthetic", "authors": ["Nobody"]},
        "original_system": {"engine": "ns2", "description": "none"},
        "notes": {"scope": "s", "easy": "e", "hard": "h"},
        "parameters": {
            "congestion_control": parameter("reno"),
            "segment_bytes": parameter(SEGMENT_BYTES, published=False),
            "duration_s": parameter(DURATION_S),
            "access_bps": parameter(10e6),
            "access_s": parameter(0.01),
            "bottleneck_bps": parameter(BOTTLENECK_BPS),
            "bottleneck_s": parameter(BOTTLENECK_DELAY_S),
        },
        "experiments": [experiment],
    }
    return {**document, **changes}


@dataclass
class World:
    """Builds a study and results of it; `flows` and `series` decide every number."""

    folder: Path

    def study(self, **changes: Any) -> Study:
        return Study.model_validate(study_document(**changes))

    def claim(self, test: dict[str, Any], **changes: Any) -> Study:
        claim = {"id": "c1", "quote": "q", "place": "p", "reading": "r", "test": test}
        return self.study(claims=[claim], **changes)

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
    ) -> SampledResults:
        """Write the results of one batch and load them with their series.

        `flows(engine, replicate, flow, **levels)` overrides columns of a flow's row (None: no
        row); `series(...)` gives a flow's samples; `runs(levels)` says whether a tier has a point.
        """
        design, flow_rows, samples, scenarios = [], [], [], {}
        for experiment, levels, values in _points(study, duration_s):
            if not runs(levels):
                continue
            for replicate, engine in itertools.product(range(replicates), engines):
                seed = replicate_seed(study.id, experiment.id, replicate)
                scenario = instantiate(experiment, values, seed=seed)
                scenarios[scenario.id] = scenario.model_dump(mode="json")
                why = refusal(engine, levels)
                design.append(
                    {
                        **{"study": study.id, "experiment": experiment.id, "engine": engine},
                        **{"point": ",".join(levels.values()), "levels": json.dumps(levels)},
                        **{"replicate": replicate, "scenario": scenario.id, "cost_s": 1.0},
                        **{"supported": not why, "reason": why, "batch": f"{study.id}-batch"},
                    }
                )
                if why:
                    continue
                run = {"engine": engine, "replicate": replicate, **levels}
                key = {"scenario": scenario.id, "engine": engine}
                for flow in scenario.flows:
                    row, own = flows(flow=flow.id, **run), {**key, "flow": flow.id}
                    if row is not None:
                        flow_rows.append({**FLOW_ROW, "kind": flow.kind, **row, **own})
                    samples += [own | sample for sample in series(flow=flow.id, **run)]
                for monitor in scenario.monitors:
                    name = f"{monitor.link}:{monitor.direction}"
                    own = {**key, "link": name}
                    samples += [own | sample for sample in series(flow=name, **run)]
        self.write(design, flow_rows, samples, scenarios, study.id)
        return load_sampled(self.folder, study.id, SERIES_NUMBERS)

    def write(self, design, flows, series, scenarios, study_id) -> None:
        root = self.folder
        folder = root / "results" / study_id
        write_text(root / "design" / f"{study_id}.csv", pd.DataFrame(design).to_csv(index=False))
        write_text(root / "design" / "scenarios" / f"{study_id}.json", json.dumps(scenarios))
        columns = [*FLOW_COLUMNS, "engine_version"]
        table = pd.DataFrame(flows).assign(engine_version="1").reindex(columns=columns)
        with atomic(folder / "flows.parquet") as path:
            table.to_parquet(path)
        samples = pd.DataFrame(series).reindex(columns=list(SERIES_COLUMNS))
        text = {name: object for name in ("scenario", "engine", "flow", "link")}
        numbers = {name: float for name in SERIES_COLUMNS if name not in text}
        samples = samples.astype(numbers | text)
        samples = samples.where(samples.notna(), None).astype(numbers)
        for name, rows in (("flows", table), ("series", samples)):
            with atomic(root / "batches" / f"{study_id}-batch.{name}.parquet") as path:
                rows.to_parquet(path)


def _points(study, duration_s):
    """Yield the experiment, levels and parameters of each point of a study."""
    for experiment in study.experiments:
        known = plain_values(parameters_of(study, experiment))
        known |= {} if duration_s is None else {"duration_s": duration_s}
        for combination in itertools.product(*(f.levels for f in experiment.factors)):
            keys = (level.key for level in combination)
            levels = dict(zip((f.id for f in experiment.factors), keys, strict=True))
            yield (
                experiment,
                levels,
                known | {k: v for one in combination for k, v in one.set.items()},
            )


FLOW_ROW = {
    **{"throughput_bps": 4e5, "goodput_bps": 3.8e5, "loss_rate": 8 / 500},
    **{"delay_mean_s": 0.1, "delay_p95_s": 0.12, "rtt_mean_s": 0.2},
    **{"packets_sent": 500, "packets_received": 490, "packets_dropped": 8},
    **{"packets_in_flight": 2, "retransmissions": 8, "timeouts": 0, "delivery_ratio": 490 / 500},
}


def tolerance(relative=None, absolute=None):
    kind = {"relative": relative} if absolute is None else {"absolute": absolute}
    return {**kind, "reason": "usual"}


@pytest.fixture(scope="module", autouse=True)
def _on_the_wheel():
    """Let unit tests, whose projects are parts of one, see no ns-3 that a user named."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("NS3_PREFIX", raising=False)
        yield


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def sampled():
    """Turns windows in segments, and what else is given, into samples one second apart."""

    def samples(windows, ssthresh=np.nan, **columns):
        rows = {
            "time_s": np.arange(1.0, len(windows) + 1),
            "cwnd_bytes": np.array(windows) * SEGMENT_BYTES,
            "ssthresh_bytes": np.array(ssthresh) * SEGMENT_BYTES,
            **{"rtt_s": 1.0, "throughput_bps": 1e5, **columns},
        }
        return pd.DataFrame(rows).to_dict("records")

    return samples


@pytest.fixture
def project(world, tmp_path):
    """A project folder whose report can be rendered."""
    from tests.unit.report_project import Project

    return Project(world, tmp_path / "project")


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """A project of the example on one engine, rendered once, to be read."""
    return _rendered(tmp_path_factory)


@pytest.fixture(scope="module")
def on_two_engines(tmp_path_factory):
    """The same on two engines, between which verdicts differ."""
    from tests.unit.report_project import faster_on_ns3

    return _rendered(tmp_path_factory, engines=("ns3", "ns2"), flows=faster_on_ns3)


def _rendered(factory, **results):
    from tests.unit.report_project import Project, example

    made = Project(World(factory.mktemp("world")), factory.mktemp("project"))
    made.add(example(made.world), **results)
    made.render("synthetic")
    return made
