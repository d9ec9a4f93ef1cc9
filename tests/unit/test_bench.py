"""The bench: goals, ratios, the cost model's error, its scenarios and its page."""

import json
from pathlib import Path

import pytest
from bench.alternative import OURS, way_ratios
from bench.bench import write_bench
from bench.cost_model import factors, predict, predictions
from bench.engine import FULL, QUICK, growth
from bench.scenario import dumbbell
from bench.schedule import Overhead, most_cores, speedups, wall_s
from bench.set_up import BEFORE, ENVIRONMENT, WHEEL, halved
from bench.source_build import sample, trained
from bench.workflow import no_op
from pydantic import ValidationError
from replication.engines.catalogue import ENGINES
from replication.report.parts.bench_model import (
    Alternative,
    Bench,
    EngineCost,
    Figure,
    Memory,
    Prediction,
    SetUp,
    Speedup,
    Stage,
    read_bench,
)
from replication.study.errors import InputError
from replication.study.files import write_text
from replication.study.report_page import BENCH_PAGE
from replication.study.storage.table import DESIGN_COLUMNS, write_table

from tests.unit.report_project import NASTY, example, soup
from tests.unit.test_scale import sweep

ROOT = Path(__file__).parents[2]


def figure(value: float, **goal: float) -> Figure:
    return Figure(id="f", title="F", value=value, unit="1", how="a over b", **goal)


@pytest.mark.parametrize(
    ("value", "goal", "met"),
    [
        (1.1, {"at_most": 1.1}, True),
        (1.1001, {"at_most": 1.1}, False),
        (0.95, {"at_least": 0.95}, True),
        (0.9499, {"at_least": 0.95}, False),
        (7.0, {}, None),
    ],
)
def test_a_goal_is_met_up_to_its_edge(value, goal, met):
    assert figure(value, **goal).met is met


def test_a_figure_has_one_goal():
    with pytest.raises(ValidationError, match="at_most and at_least"):
        figure(1.0, at_most=1.0, at_least=1.0)


@pytest.mark.parametrize("size", [FULL, QUICK])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_supports_the_scenarios(engine, size):
    for flows in (size.flows, *size.flow_counts):
        scenario = dumbbell(engine, flows, size.duration_s)
        assert ENGINES[engine].refusal(scenario) == ""
        assert len(scenario.flows) == flows


def test_the_same_network_stands_for_every_engine():
    networks = [dumbbell(engine, 3, 5.0).model_copy(update={"flows": []}) for engine in ENGINES]
    assert len({n.canonical_json() for n in networks}) == 1


def memory(varied: str, value: float, peak: int) -> Memory:
    return Memory(engine="ns3", varied=varied, value=value, peak_memory_bytes=peak, series_bytes=1)


def test_growth_is_taken_from_end_to_end():
    rows = [
        memory("duration_s", 10, 1000),
        memory("duration_s", 20, 9),
        memory("duration_s", 40, 1100),
    ]
    rows += [memory("flows", 1, 10_000), memory("flows", 5, 50_000)]
    duration, flows = growth(rows)
    assert (duration.value, duration.met) == (1.1, False)
    assert (flows.value, flows.unit, flows.met) == (10.0, "kB", None)


def way(name: str, cpu_s: float | None, packets: int | None = 1000) -> Alternative:
    return Alternative(
        name=name, metrics="m", scenarios=1, packets=packets, cpu_s=cpu_s, wall_s=cpu_s
    )


def test_ways_are_held_against_ours_by_the_packet():
    rows = [way(OURS, 2.0), way("loop", 1.0), way("bindings", 3.0, 500), way("none", None, None)]
    loop, bindings = way_ratios(rows)
    assert (loop.value, loop.met) == (2.0, False)
    assert (bindings.value, bindings.met) == (pytest.approx(1 / 3, abs=1e-4), True)


def test_errors_of_the_cost_model():
    found = predict("ns3", "s", [(2.0, 1.0), (1.0, 4.0), (3.0, 3.0), (1.0, 1.0)])
    assert (found.median_factor, found.p90_factor) == (1.5, 4.0)
    assert found.total_ratio == pytest.approx(7 / 9)


def test_the_speed_of_a_machine_is_no_error_of_the_cost_model():
    found = predict("ns3", "s", [(2.0, 1.0), (4.0, 2.0), (8.0, 4.0), (9.0, 3.0)])
    assert (found.p90_factor, found.p90_factor_apart) == (3.0, 1.5)


def test_a_study_that_is_far_off_is_named_whatever_the_speed_of_the_machine():
    pairs = {"all": [(2.0, 1.0)] * 3 + [(8.0, 2.0)], "a": [(2.0, 1.0)] * 3, "b": [(8.0, 2.0)]}
    rows = [predict("ns3", study, own) for study, own in pairs.items()]
    rows += [predict("ns2", study, [(1.0, 2.0)]) for study in ("all", "a")]
    found = {figure.id: figure for figure in factors(rows)}
    assert [(f.value, f.met) for f in found.values()] == [
        (2.0, False),
        (2.0, False),
        (1.0, True),
        (1.0, True),
    ]
    assert "of b," in found["cost-model-study-ns3"].how


def test_predictions_count_each_finished_scenario_once(tmp_path):
    row = dict.fromkeys(DESIGN_COLUMNS, "") | {"engine": "ns3", "batch": "ns3-light-0"}
    for study, scenarios in {"a": "xyx", "b": "zx"}.items():
        rows = [row | {"study": study, "scenario": s, "cost_s": "2"} for s in scenarios]
        write_table(tmp_path / "design" / f"{study}.csv", rows, DESIGN_COLUMNS)
    runs = [{"scenario": s, "cpu_s": c} for s, c in {"x": 1.0, "y": 4.0, "gone": 9.0}.items()]
    usage = tmp_path / "batches" / "ns3-light-0.usage.json"
    write_text(usage, json.dumps({"engine": "ns3", "runs": runs}))
    found = {p.study: (p.scenarios, p.predicted_s, p.used_s) for p in predictions(tmp_path)}
    assert found == {"all": (2, 4.0, 5.0), "a": (2, 4.0, 5.0), "b": (1, 2.0, 1.0)}
    assert next(iter(found)) == "all"


def test_nothing_is_predicted_where_nothing_ran(tmp_path):
    assert predictions(tmp_path) == []


def test_what_was_not_measured_meets_and_misses_no_goal():
    nothing = figure(0.0, at_most=1.0).model_copy(update={"value": None})
    assert (nothing.met, nothing.share_of_goal) == (None, None)
    assert figure(2.0, at_most=4.0).share_of_goal == 0.5
    assert figure(0.5, at_least=1.0).share_of_goal == 2.0


def test_a_schedule_without_overhead_is_the_longest_job_first():
    jobs_s = [3.0, 3.0, 2.0, 2.0, 2.0]
    assert wall_s(jobs_s, 1, Overhead()) == 12.0
    assert wall_s(jobs_s, 2, Overhead()) == 7.0
    assert wall_s(jobs_s, 100, Overhead()) == 3.0


def test_a_scheduler_adds_its_submissions_starts_and_looks():
    assert wall_s([1.0] * 10, 10, Overhead(submit_s=0.5)) == 6.0
    assert wall_s([1.0], 1, Overhead(start_s=2.0)) == 3.0
    assert wall_s([1.0, 1.0], 1, Overhead(look_s=20.0)) == 40.0


def test_more_cores_are_held_against_one_without_a_scheduler(tmp_path):
    for number, runs in enumerate([[4.0, 4.0], [8.0], [100.0]]):
        document = {"runs": [{"wall_s": s, "reused": False} for s in runs]}
        usage = tmp_path / "batches" / f"ns3-light-{number}.usage.json"
        write_text(usage, json.dumps(document))
    # The last one is of an earlier design.
    row = dict.fromkeys(DESIGN_COLUMNS, "")
    rows = [row | {"batch": f"ns3-light-{number}"} for number in range(2)]
    write_table(tmp_path / "design" / "a.csv", rows, DESIGN_COLUMNS)
    found = {(row.way, row.cores): row for row in speedups(ROOT, tmp_path)}
    assert found["one machine", 2].speedup == 2.0
    assert found["one machine", 1000].speedup == 2.0
    assert found["Slurm, a job a run", 1000].jobs == 3
    assert found["Slurm, batches", 1000].speedup < 1.0
    assert [figure.value for figure in most_cores(list(found.values()))] == [
        found[way, 1000].speedup for way in dict.fromkeys(way for way, _ in found)
    ]


def test_nothing_is_scheduled_where_nothing_ran(tmp_path):
    assert speedups(ROOT, tmp_path) == []


def bench(**changes) -> Bench:
    cost = EngineCost(
        engine="ns3",
        version=f"3.44 {NASTY.format('v')}",
        scenario="0" * 16,
        packets=1000,
        events=4000,
        cpu_s=0.5,
    )
    values = {
        "written": "2026-01-02T03:04:05+00:00",
        "quick": False,
        "cores": 2,
        "machine": "Linux",
        "code": "0",
        "others_share": 0.125,
        "figures": [
            figure(1.05, at_most=1.1),
            figure(0.5, at_least=0.95).model_copy(update={"id": "g"}),
        ],
        "engines": [cost, cost.model_copy(update={"engine": "ns2", "events": None, "cpu_s": 0.25})],
        "builds": [],
        "memory": [memory("flows", 1, 10_000)],
        "stages": [Stage(name="simulate", jobs=3, wall_s=12.5, how="h")],
        "ways": [
            way(OURS, 2.0),
            Alternative(name="bindings", metrics="sinks", scenarios=1, reason="not installed"),
        ],
        "predictions": [predict("ns3", "all", [(1.0, 2.0)])],
        "speedups": [
            Speedup(way=w, cores=c, jobs=3, wall_s=9.0 / c, speedup=c)
            for w in ("cores", "Slurm")
            for c in (1, 2, 4)
        ],
        "set_up": [
            SetUp(name="wheel", downloaded_bytes=3_000_000, unpacked_bytes=9_000_000, wall_s=2.5)
        ],
        "sweeps": [sweep(100)],
    }
    return Bench.model_validate(values | changes)


def test_a_rerun_that_did_something_is_none():
    idle, busy = "Nothing to be done (all files are up to date).", "rule render_page:"
    assert no_op([(3.0, idle), (2.4, idle)]).met
    told = no_op([(3.0, idle), (0.1, busy)])
    assert (told.value, told.met) == (3.0, False) and "1 more did something" in told.how
    void = no_op([(0.1, busy)])
    assert (void.value, void.met) == (None, None) and "edited" in void.how


def test_what_an_installation_takes_is_held_against_what_it_once_did():
    taken = {
        ENVIRONMENT: (211_000_000, 600_000_000, 20.0),
        BEFORE[ENVIRONMENT]: (211_000_000, 800_000_000, 40.0),
        WHEEL: (69_200_000, 38_000_000, 1.0),
        BEFORE[WHEEL]: (69_200_000, 304_000_000, 1.5),
    }
    rows = [
        SetUp(name=name, downloaded_bytes=fetched, unpacked_bytes=size, wall_s=wall_s)
        for name, (fetched, size, wall_s) in taken.items()
    ]
    assert {f.id.removeprefix("set-up-"): (f.value, f.met) for f in halved(rows)} == {
        "environment-fetched": (1.0, False),
        "environment-unpacked": (0.75, False),
        "environment-time": (0.5, True),
        "wheel-fetched": (1.0, False),
        "wheel-unpacked": (0.125, True),
        "wheel-time": (0.667, False),
    }
    assert halved([]) == []


def test_the_build_from_sources_is_judged_by_runs_of_every_study_and_by_none_of_its_profile():
    runs = sample(ROOT)
    assert not {run.id for run in runs} & {run.id for run in trained(ROOT)}
    assert 50 < len(runs) < 120


def test_what_is_written_is_read_back(tmp_path):
    write_bench(bench(), tmp_path / BENCH_PAGE.made_of)
    assert read_bench(tmp_path) == bench()
    assert isinstance(bench().predictions[0], Prediction)


def test_a_file_of_another_version_says_what_to_run(tmp_path):
    write_text(tmp_path / BENCH_PAGE.made_of, '{"written": "x"}')
    with pytest.raises(InputError, match="make bench"):
        read_bench(tmp_path)


@pytest.fixture
def studied(world, project):
    project.add(example(world))
    return project


def test_the_page_shows_each_figure_beside_its_goal(studied):
    write_bench(bench(), studied.data / BENCH_PAGE.made_of)
    page = soup(studied.render("synthetic") / "bench.html")
    rows = {row["data-figure"]: row.get_text(" ") for row in page.select("[data-figure]")}
    assert "met" in rows["f"] and "at most 1.1" in rows["f"]
    assert "missed" in rows["g"] and "at least 0.95" in rows["g"]
    engines = [
        [c.get_text() for c in row.find_all(["th", "td"])]
        for row in page.select("#per-packet ~ div tbody tr")
    ]
    assert engines[0][4:] == ["500.0", "1.00", "2,000", "8,000"]
    assert engines[1][4:] == ["250.0", "0.50", "4,000", "–"]
    assert "not installed" in page.get_text()
    assert "1 of 2 goals are met" in page.select_one(".answer").get_text()
    assert len(page.select("figure.chart")) == 2
    assert page.find("figure").sourceline < page.find("table").sourceline
    assert [c.get_text() for c in page.select("#set-up ~ div tbody td")][:3] == ["3", "9", "2.500"]
    assert not page.select("#builds")
    assert page.find("img") is None
    assert (studied.out / "data" / BENCH_PAGE.made_of).is_file()
    assert soup(studied.out / "index.html").find("a", href="bench.html")


def test_a_reduced_bench_judges_nothing(studied):
    write_bench(bench(quick=True), studied.data / BENCH_PAGE.made_of)
    page = soup(studied.render("synthetic") / "bench.html")
    assert {row.select_one(".badge").get_text() for row in page.select("[data-figure]")} == {
        "not judged"
    }


def test_without_a_bench_there_is_no_page_and_no_link(studied):
    out = studied.render("synthetic")
    assert not (out / "bench.html").exists()
    assert not soup(out / "index.html").find("a", href="bench.html")


def test_a_bench_that_cannot_be_read_does_not_stop_the_report(studied):
    write_text(studied.data / BENCH_PAGE.made_of, "{}")
    assert "make bench" in soup(studied.render("synthetic") / "bench.html").get_text()
