"""The engines give what the committed table of their differences says."""

import warnings

import pytest
from measurements.bench import Result
from measurements.difference_conditions import (
    CONDITIONS,
    PACKET_BITS,
    SEGMENT,
    VARIANTS,
    SingleFlow,
    mean_window,
    start_up,
)
from measurements.differences import CASE, TABLE, Table, generation, is_current, tasks
from replication.base.table import DIFFERENCE_COLUMNS, read_rows
from replication.engines.catalogue import ENGINES

#: Seconds of CPU: each of them once on each engine, in conditions that few packets decide.
SEEDED = (SingleFlow(0, 0.1, True), SingleFlow(0.01, 0.1, True))
FEW = ("cubic", "vegas")


def test_the_committed_table_of_differences_matches_the_engines(request):
    kept = {}
    for row in read_rows(TABLE, DIFFERENCE_COLUMNS):
        kept.setdefault(tuple(row[name] for name in CASE), []).append(row)
    generations, compared = {engine: generation(engine) for engine in ENGINES}, 0
    for task in tasks():
        rows = kept.get(task.case, [])
        wanted = task.condition in SEEDED and task.variant in FEW
        # Rows of an old generation are named by tests/unit/test_flow_differences.py.
        if not wanted or not is_current(task, rows, generations):
            continue
        measured = task.measure(request.getfixturevalue(task.engine), generations[task.engine])
        assert [row["metric"] for row in rows] == [row["metric"] for row in measured]
        for old, new in zip(rows, measured, strict=True):
            assert float(new["value"]) == pytest.approx(float(old["value"]), rel=0.05)
            compared += 1
    if not compared:
        text = "no row was measured with the present sources of the engines"
        warnings.warn(text, stacklevel=1)


def test_laws_of_single_flows_match_published_formulas():
    full, lossy = SingleFlow(0, 0.1, False), SingleFlow(0.01, 0.1, False)
    assert full in CONDITIONS and lossy in CONDITIONS
    assert full.law("bbr", "rtt_s") == pytest.approx(0.1031, abs=1e-4)
    # The mean of a sawtooth from one to two bandwidth-delay products.
    assert full.law("newreno", "rtt_s") == pytest.approx(1.556 * 0.1031, rel=1e-3)
    # Mathis: 12.25 segments; by Padhye's equation 30 timeouts of 0.2 s take 4.3 % of them: 11.72.
    segments = lossy.law("newreno", "throughput_bps") * 0.1 / PACKET_BITS
    assert segments == pytest.approx(11.72, rel=0.01)
    # The table's steps; the formula of section 5 gives 38 and 263.
    assert mean_window("highspeed", 1e-3, 1, 0.1) == pytest.approx(59.3, abs=0.1)
    assert mean_window("highspeed", 1e-4, 1, 0.1) == pytest.approx(303.6, abs=0.1)
    assert mean_window("scalable", 1e-3, 1, 0.1) == pytest.approx(80)


def test_every_algorithm_of_an_engine_is_measured():
    controls = frozenset().union(*(engine.congestion_controls for engine in ENGINES.values()))
    assert controls <= set(VARIANTS)
    assert controls <= {task.variant for task in tasks()}


def sample(time_s, segments, ssthresh="", drops=0):
    numbers = {"cwnd_bytes": str(segments * SEGMENT), "ssthresh_bytes": ssthresh}
    counts = {"drops": str(drops), "retransmissions": str(2 * drops)}
    return {"time_s": str(time_s), "flow": "t", "link": ""} | numbers | counts


def test_start_up_ends_with_the_first_threshold_and_includes_its_repair():
    series = [sample(0.1, 10), sample(0.2, 40), sample(0.3, 20, "20000"), sample(0.9, 20, "1", 3)]
    series += [sample(1.2, 90, "1", 4), sample(1.4, 90, "1", 5)]
    figures = start_up(Result(None, {}, series, {}, []), 0.1, 10)
    assert figures["startup_window_segments"] == 40
    assert (figures["startup_drops"], figures["startup_retransmissions"]) == (7, 14)


def test_only_rows_of_an_old_engine_or_scenario_are_measured_again(tmp_path):
    task, *_ = (task for task in tasks() if task.engine == "ns3")
    row = dict(zip(CASE, task.case, strict=True)) | {"metric": "timeouts", "value": "1"}
    row |= {"generation": "new", "scenario": task.scenario}
    assert is_current(task, [row], {"ns3": "new"})
    assert not is_current(task, [row], {"ns3": "newer"})
    assert not is_current(task, [row | {"scenario": "other"}], {"ns3": "new"})
    assert not is_current(task, [], {"ns3": "new"})
    # What a stopped run wrote is there when it continues; rows of past conditions go.
    table = Table(tmp_path / "table.csv", [task])
    rows = dict.fromkeys(DIFFERENCE_COLUMNS, "") | row
    table.rows = {task.case: [rows], ("past", "condition", "ns3"): [rows]}
    assert table.write() == []
    assert list(Table(table.path, [task]).rows) == [task.case]
