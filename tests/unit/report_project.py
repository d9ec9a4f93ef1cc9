"""A project folder whose report is rendered: one small study, its results and their evaluation."""

import csv
import json
from pathlib import Path

from bs4 import BeautifulSoup
from replication.base.files import write_text
from replication.compare.agreement import write_agreement
from replication.metrics.collect import collect_study
from replication.metrics.results import Results
from replication.report.pages.source import Source
from replication.report.render import render
from replication.study.study import Study
from replication.verdicts.evaluate import evaluate_study, merge
from replication.verdicts.self_consistency import write_self_consistency
from replication.verdicts.verdict_table import primary_engines

from tests.unit.conftest import ROOT, claim, quantity, tolerance

NASTY = "<script>window.hit={}</script><img src=x onerror=hit> '\"&amp; {{{{ 7*7 }}}} \u202e𝒯é"
PROVENANCE = {
    "written": "2026-01-02T03:04:05+00:00",
    "config": {"tier": "paper", "runtime": "native"},
    "tier": {
        "id": "paper",
        "title": "the papers' own durations",
        "levels": "all",
        "replicates": [{"count": 5}],
        "batch_cost_s": 60,
    },
    "engines": {"ns3": {"version": "3.44", "fingerprint": "f"}},
    "platform": {"system": "Linux", "cores": 2},
    "stages": {"simulate_batch": {"jobs": 3, "wall_s": 12.5, "cpu_s": 24.0}},
    "simulate": {"scenarios": 27, "simulator_cpu_s": 3723.0},
}
CELL = {"metric": "throughput_bps", "aggregate": "sum", "tolerance": tolerance(0.1)}
DIFFERENCE = {"id": "any", "title": f"Any {NASTY.format('t')}"}
DIFFERENCE |= {"engines": {"ns3": f"a {NASTY.format('a')}", "ns2": "b"}}
DIFFERENCE |= {"shows_in": ["throughput_bps", "timeouts"], "sources": [f"s {NASTY.format('s')}"]}
DIFFERENCES = {"schema_version": 1, "differences": [DIFFERENCE]}
TABLE = {"id": "1", "title": "Rates", "experiment": "sweep", "where": {"variant": "reno"}}
TABLE |= {"row_factor": "access", "columns": {"throughput": CELL}}
RATES = quantity() | {"aggregate": "sum"}
VALUE = {"kind": "value", "of": RATES, "expect": {"at_least": 7e5}}
TESTS = {
    "value": VALUE,
    "wrong": {**VALUE, "expect": {"at_least": 9e5}, "direction": {"at_least": 5e5}},
    "parts": {"kind": "all", "parts": [VALUE, VALUE]},
    "open": {"kind": "not_testable", "reason": "No loss is reported."},
}
PUBLISHED = [
    ("1", "slow", "throughput", "bit/s", 800000, "0.80"),
    ("1", "mid", "throughput", "bit/s", 1200000, "1.20"),
    ("1", "fast", "throughput", "bit/s", 123456, "0.123456"),
]


#: A report without studies, for the templates alone.
EMPTY = Source(Path(), Path(), [], [], [], PROVENANCE, {}, "data")


class Project:
    """A project folder with one study, its results and its evaluation."""

    def __init__(self, world, root: Path) -> None:
        self.world, self.root, self.data = world, root, world.folder
        self.out = root / "reports" / "html"
        self.provenance = PROVENANCE
        self.write("configs/engine_differences.yaml", json.dumps(DIFFERENCES, ensure_ascii=False))

    def link_engines(self) -> None:
        """Assign results computed on this machine's engines to this project's."""
        (self.root / "workflow").mkdir()
        (self.root / "workflow/engines").symlink_to(ROOT / "workflow/engines")

    def put(self, study: Study, published=PUBLISHED) -> Path:
        """Write a study and its published numbers; return the file of these."""
        document = study.model_dump_json(exclude_none=True)
        self.write(f"configs/studies/{study.id}/study.yaml", document)
        numbers = self.world.published(*(published if study.tables else []))
        return numbers.rename(self.write(f"data/published/{study.id}.csv", ""))

    def add(self, study: Study, published=PUBLISHED, **results) -> None:
        rates = {"slow": 4e5, "mid": 4.1e5, "fast": 4.2e5}
        results.setdefault(
            "flows",
            lambda access, replicate, **_: {"throughput_bps": rates[access] + 1000 * replicate},
        )
        self.judge(study, self.put(study, published), **results)

    def judge(self, study: Study, numbers: Path, **results) -> None:
        """Write results of a study and judge them against its published numbers."""
        self.world.results(study, **results)
        collect_study(study, self.data)
        loaded = Results.load(self.data, study.id)
        evaluate_study(study, numbers, [loaded], self.data / "evaluation" / study.id)
        write_self_consistency(self.root, self.data, study.id)

    def write(self, name: str, text: str) -> Path:
        write_text(self.root / name, text)
        return self.root / name

    def merge(self, *studies: str) -> None:
        evaluations = [self.data / "evaluation" / name for name in studies]
        merge(evaluations, primary_engines(self.root, self.data, studies), self.data)
        write_agreement(self.root, self.data, studies)
        write_text(self.data / "provenance.json", json.dumps(self.provenance))

    def render(self, *studies: str) -> Path:
        self.merge(*studies)
        render(self.root, self.data, self.root / "reports" / "notebooks", self.out)
        return self.out

    def page(self, name: str) -> BeautifulSoup:
        return soup(self.out / f"{name}.html")

    def rows(self, name: str) -> list[dict[str, str]]:
        return csv_rows(self.data / name)


def example(world, **changes) -> Study:
    claims = [claim(test, name, quote=f"Words of {name}") for name, test in TESTS.items()]
    return world.study(tables=[TABLE], claims=claims, **changes)


def faster_on_ns3(engine, access, replicate, **_):
    """Rates that are inside and outside what is claimed and printed, by engine."""
    base = {"slow": 4e5, "mid": 4.1e5, "fast": 4.2e5}[access] + 1000 * replicate
    return {"throughput_bps": base if engine == "ns3" else base / 2, "retransmissions": replicate}


def csv_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
