"""What the bench reads from the last report: efficiency, tail, and minutes, or why not."""

import json
import os
import re
from pathlib import Path

import pytest
from bench.last_report import RULES, last_report, report_jobs, tail_s
from replication.plan.config import study_ids
from replication.report.provenance import covered_s
from replication.study.files import write_text
from replication.study.storage.table import DESIGN_COLUMNS, write_table

ROOT = Path(__file__).parents[2]
#: Of each batch: the job's start and end, and the CPU seconds of its simulators.
BATCHES = {
    "ns3-light-0": (100.0, 400.0, 285.0),
    "linux-light-0": (100.0, 400.0, 240.0),
    "ns2-light-0": (400.0, 600.0, 190.0),
}


def benchmark(data: Path, name: str, start_s: float, end_s: float) -> None:
    path = data / "benchmarks" / f"{name}.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"s\th:m:s\n{end_s - start_s}\t0:00:00\n", encoding="utf-8")
    os.utime(path, (end_s, end_s))


def usage(data: Path, batch: str, reused: bool = False) -> None:
    start_s, end_s, cpu_s = BATCHES[batch]
    document = {
        "engine": batch.partition("-")[0],
        "started": start_s,
        "finished": end_s,
        "runs": [{"cpu_s": cpu_s, "wall_s": cpu_s, "reused": reused}],
    }
    write_text(data / "batches" / f"{batch}.usage.json", json.dumps(document))


def provenance(data: Path, **changes: object) -> None:
    document = {
        "tier": {"id": "paper"},
        "platform": {"cores": 2},
        "studies": {name: {} for name in study_ids(ROOT)},
        "engines": {"ns3": {"from_source": True}, "ns2": {}, "linux": {}},
        "simulate": {"efficiency": 0.715, "scenarios": 3, "wall_s": 500.0},
    }
    write_text(data / "provenance.json", json.dumps(document | changes))


@pytest.fixture
def data(tmp_path):
    """Return the data of a report that took 600 s, the last 100 s for a page."""
    row = dict.fromkeys(DESIGN_COLUMNS, "")
    rows = [row | {"batch": batch} for batch in BATCHES]
    write_table(tmp_path / "design" / "a.csv", rows, DESIGN_COLUMNS)
    for batch, (start_s, end_s, _) in BATCHES.items():
        usage(tmp_path, batch)
        benchmark(tmp_path, f"simulate_batch/{batch}", start_s, end_s)
    benchmark(tmp_path, "simulate_batch/ns3-light-of_another_tier", 1000.0, 2000.0)
    benchmark(tmp_path, "explore_map/a.ns3", 1000.0, 2000.0)
    benchmark(tmp_path, "assemble_report", 700.0, 800.0)
    provenance(tmp_path)
    return tmp_path


def figures(data):
    return {figure.id: figure for figure in last_report(ROOT, data, 40.0)}


def test_the_minutes_of_a_report_are_those_in_which_a_job_of_it_ran(data):
    whole = figures(data)["report-paper-every-engine"]
    assert (whole.value, whole.met) == (round((600 + 40) / 60, 2), True)
    assert "600 s" in whole.how and "40 s of set-up" in whole.how


def test_minutes_on_ns3_alone_are_the_share_of_jobs_that_ran_no_other_engine(data):
    alone = figures(data)["report-paper-ns3"]
    # 300 s of ns-3 and 100 s of a page, of 900 s of jobs.
    assert alone.value == pytest.approx((600 * 4 / 9 + 40) / 60, abs=0.01)
    assert "0.444" in alone.how


def test_each_engine_has_its_efficiency(data):
    found = figures(data)
    assert (found["efficiency-ns3"].value, found["efficiency-ns3"].met) == (0.95, True)
    assert (found["efficiency-linux"].value, found["efficiency-linux"].met) == (0.8, False)
    assert found["efficiency-ns2"].value == 0.95
    assert found["efficiency-report"].value == 0.715


def test_the_tail_is_what_follows_when_a_core_has_no_batch_left(data):
    tail = figures(data)["tail-report"]
    assert (tail.value, tail.met) == (200 / 500, False)
    assert tail_s([(0.0, 3.0), (0.0, 4.0), (3.0, 5.0)], 2) == 1.0
    assert tail_s([(0.0, 3.0)], 2) == 3.0
    assert tail_s([], 2) == 0.0


def test_time_is_counted_once_and_pauses_not_at_all():
    assert covered_s([(5.0, 6.0), (0.0, 2.0), (1.0, 3.0)]) == 4.0


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"tier": {"id": "quick"}}, "of tier quick"),
        ({"studies": {"saxena": {}}}, "not every study"),
        ({"engines": {"ns3": {}, "ns2": {}, "linux": {}}}, "built from its sources"),
    ],
)
def test_another_report_says_why_it_has_no_minutes(data, changes, why):
    provenance(data, **changes)
    found = figures(data)
    for engines in ("ns3", "every-engine"):
        assert found[f"report-paper-{engines}"].value is None
        assert why in found[f"report-paper-{engines}"].how


def test_a_report_that_took_runs_over_has_no_minutes(data):
    usage(data, "linux-light-0", reused=True)
    found = figures(data)
    assert found["report-paper-ns3"].value is None
    assert "took 34% of its simulations over" in found["report-paper-ns3"].how
    assert "efficiency-linux" not in found


def test_a_report_on_ns3_alone_has_no_minutes_of_every_engine(data):
    provenance(data, engines={"ns3": {"from_source": True}})
    found = figures(data)
    assert found["report-paper-ns3"].value is not None
    assert found["report-paper-every-engine"].value is None
    assert "ran ns3 alone" in found["report-paper-every-engine"].how


def test_without_a_report_its_minutes_are_listed_as_not_measured(tmp_path):
    found = figures(tmp_path)
    assert {name: figure.value for name, figure in found.items()} == {
        "report-paper-ns3": None,
        "report-paper-every-engine": None,
    }


def test_jobs_of_a_report_are_those_of_its_rules(data):
    assert {job.rule for job in report_jobs(data, BATCHES)} == {"simulate_batch", "assemble_report"}
    others = {"engines", "maps", "sensitivity"}
    files = [p for p in (ROOT / "workflow/rules").glob("*.smk") if p.stem not in others]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    measured = set(re.findall(r"/benchmarks/(\w+)", text))
    assert measured == set(RULES)
