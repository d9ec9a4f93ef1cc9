"""The lab as a person meets it: short calls, errors that name the remedy, live runs."""

from __future__ import annotations

import io
import subprocess
import sys
import time

import pandas as pd
import pytest
from replication import lab
from replication.base.errors import InputError
from replication.engines.catalogue import ENGINES
from replication.report.notebooks import live
from replication.report.notebooks.collection import Collection, open_collection
from replication.report.notebooks.live import LiveRun, differences_of, differences_table, run_live
from replication.report.notebooks.names import find_project
from replication.report.notebooks.queue import DEFAULTS, complete_queue
from replication.report.notebooks.session import study_in_brief
from replication.study.scenario import Scenario

from tests.unit.conftest import RELEASED_STUDIES, ROOT, missing_from


@pytest.fixture(scope="module")
def collection():
    """The release, which notebooks read by default."""
    return open_collection("data/release", str(ROOT))


def python(*lines, cwd=ROOT):
    """Run lines in a fresh interpreter; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, cwd=cwd
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_lab_loads_no_large_library():
    loaded = python("import sys", "from replication import lab", "print(*sys.modules)").split()
    assert not {"pandas", "numpy", "altair", "scipy", "sklearn", "pydantic"} & set(loaded)
    opened = python(
        "import sys",
        "from replication import lab",
        "lab.open().flows('nishitha')",
        "print(*sys.modules)",
    ).split()
    assert not {"sklearn", "replication.design.new_study"} & set(opened)
    assert not [name for name in opened if name.startswith("replication.explore.regions")]


def test_every_exported_name_of_the_lab_exists():
    for name in dir(lab):
        assert getattr(lab, name) is not None
    with pytest.raises(AttributeError, match=r"'dumbell'.*dumbbell"):
        lab.dumbell  # noqa: B018


def test_plain_python_opens_results_and_shows_a_study_in_a_few_lines(tmp_path):
    (tmp_path / "data").mkdir()
    data = tmp_path / "data"
    printed = python(
        "from replication import lab",
        f"replication = lab.open({str(data)!r})",
        "print(replication.study('saxena'), replication.experiment('saxena', 'delay'))",
        cwd=tmp_path,
    )
    assert len(printed) < 1500 and "experiment delay" in printed


def test_studies_are_those_of_the_results_and_any_study_can_be_read(collection, tmp_path):
    assert collection.studies == RELEASED_STUDIES
    without_results = Collection(ROOT, tmp_path)
    assert not without_results.studies and without_results.study("saxena").id == "saxena"


def test_a_study_in_brief_names_its_experiments_and_lists(collection):
    words = study_in_brief(collection.study("kapadia"))
    assert "experiment trios" in words and "replication.parameters('kapadia')" in words


def test_listed_parameters_and_levels_can_be_used_in_a_design(collection):
    parameters = collection.parameters("saxena").set_index("parameter")
    assert parameters.loc["access_delay_s", "unit"] == "s"
    assumed = parameters[~parameters["stated"]]
    assert len(assumed) and (assumed["plausible"] != "").all() and (assumed["why"] != "").all()
    stated = parameters[parameters["stated"]]
    assert len(stated) and (stated["plausible"] == "").all() and (stated["why"] != "").all()
    levels = collection.levels("saxena")
    first = levels[levels["experiment"] == "delay"].groupby("factor", sort=False).first()
    scenario = collection.design("saxena", "delay", dict(first["level"]))
    assert isinstance(scenario, Scenario)


def simulate_on(engine):
    return lambda replication: replication.simulate(scenario_of(replication), engine)


def scenario_of(replication):
    return replication.scenario("nishitha", "homogeneous")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.flows("saxna"), "study: 'saxna'.*nearest: saxena"),
        (lambda r: r.flows("reno"), r"study: 'reno'.*`replication.studies`"),
        (lambda r: r.engine("saxna"), "nearest: saxena"),
        (lambda r: r.claims("saxna"), "nearest: saxena"),
        (
            lambda r: r.claims("saxena", "bdp"),
            "experiment: 'bdp'.*nearest: bdp_",
        ),
        (
            lambda r: r.experiment("kapadia", "trio"),
            "kapadia: experiment: 'trio'.*nearest: trios",
        ),
        (lambda r: r.scenario("saxena", "homogeneous"), "experiment: 'homogeneous'"),
        (lambda r: r.series("saxena", "homogeneous"), "experiment: 'homogeneous'"),
        (lambda r: r.cells("saxena", "delays"), "nearest: delay"),
        (lambda r: [*r.points("saxena", "delays")], "nearest: delay"),
        (
            lambda r: r.design("kapadia", "trios", {"variant": "reno"}, buffer=1),
            r"'buffer'.*nearest: buffer_bytes.*parameters\('kapadia'\)`",
        ),
        (
            lambda r: r.design("kapadia", "trios", {"variant": "renp"}),
            r"level: 'renp'.*nearest: reno;.*levels\('kapadia'\)`",
        ),
        (lambda r: r.design("kapadia", "trios", {"varient": "reno"}), "nearest: variant"),
        (lambda r: r.design("kapadia", "trio", {}), "nearest: trios"),
        (simulate_on("ns4"), "engine: 'ns4'.*nearest: ns"),
        (lambda r: r.simulate({"duration_s": 3}), "scenario: .*missing"),
        (
            lambda r: r.region("bbr", "ns3"),
            "region: 'bbr'.*`replication.regions`",
        ),
        (
            lambda r: lab.dumbbell(["cubik"]),
            "control: 'cubik'.*nearest: cubic",
        ),
        (lambda r: lab.dumbbell(queue="fqcodel"), "queue: 'fqcodel'.*nearest: fq_codel"),
        (lambda r: lab.dumbbell(engine="ns4"), "engine: 'ns4'.*nearest: ns"),
        (
            lambda r: lab.dumbbell(delayed_acks=1),
            "'delayed_acks'.*nearest: delayed_ack",
        ),
        (
            lambda r: lab.dumbbell(["reno"] * 2, rtt_ms=[1, 2, 3]),
            "rtt_ms: .*3 values.* 2 ",
        ),
        (lambda r: lab.dumbbell(rate_mbps=-3), r"rate_mbps: .*\(got -3\)"),
        (lambda r: lab.dumbbell(rtt_ms=[0]), r"rtt_ms\[0\]: .*\(got 0\)"),
        (lambda r: lab.dumbbell(queue={"ecn": True}), "queue: .*kind.*droptail"),
        (
            lambda r: lab.dumbbell(queue={"kind": "codel", "limit_packet": 3}),
            "limit_packet: .*nearest: limit_packets",
        ),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(collection, call, message):
    with pytest.raises(InputError, match=message):
        call(collection)


def test_a_root_without_a_project_is_refused_and_the_default_is_this_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_project().samefile(ROOT)
    with pytest.raises(InputError, match=r"root: .*configs/studies"):
        find_project(str(tmp_path))


@pytest.mark.parametrize("kind", DEFAULTS)
def test_naming_a_kind_gives_a_complete_queue(kind):
    designed = lab.dumbbell(queue=kind, buffer_bdp=0.5).scenario.links[0]
    queue = designed.queue_ab
    assert queue.kind == kind
    # Half of 10 Mbit/s x 40 ms, in packets of 1500 bytes.
    assert (getattr(queue, "limit_packets", None) or queue.memory_limit_bytes / 1500) == 17
    assert complete_queue(kind, {})["kind"] == kind


def test_a_queue_of_a_study_keeps_its_limit_when_its_kind_changes(collection):
    known = collection.levels("dzivhani")
    experiment = known["experiment"].iloc[0]
    first = known[known["experiment"] == experiment].groupby("factor", sort=False)["level"].first()
    levels = dict(first)
    before = collection.design("dzivhani", experiment, levels)
    changed = collection.design(
        "dzivhani", experiment, levels, bottleneck_queue={"kind": "red", "ecn": True}
    )
    watched = before.monitors[0].link
    old, new = (
        next(link.queue_ab for link in scenario.links if link.id == watched)
        for scenario in (before, changed)
    )
    assert new.kind == "red" != old.kind and new.ecn
    assert new.limit_packets == old.limit_packets
    assert new.device_queue_packets == old.device_queue_packets == 100


def test_a_dumbbell_has_the_given_flows_rate_round_trips_and_queue():
    designed = lab.dumbbell(
        ["cubic", "bbr", {"congestion_control": "cubic", "start_s": 5}],
        rtt_ms=[20, 80, 50],
        rate_mbps=10,
        buffer_bdp=2,
        queue="fq_codel",
        duration_s=30,
        delayed_ack_segments=1,
    )
    scenario = designed.scenario
    assert [flow.id for flow in scenario.flows] == ["cubic-1", "bbr", "cubic-2"]
    assert [flow.start_s for flow in scenario.flows] == [0, 0, 5]
    assert {flow.delayed_ack_segments for flow in scenario.flows} == {1}
    bottleneck = scenario.links[0]
    assert bottleneck.rate_bps == 10e6
    # Twice 10 Mbit/s x 80 ms, in packets of 1500 bytes.
    assert bottleneck.queue_ab.limit_packets == 133
    delays_s = {link.a: link.delay_s for link in scenario.links}
    round_trips_ms = [2e3 * (delays_s[f"s{n}"] + bottleneck.delay_s) for n in (1, 2, 3)]
    assert round_trips_ms == pytest.approx([20, 80, 50])
    # The textbook rule: windows do not limit, senders jitter.
    assert all(flow.maximum_window_bytes > 3 * 200_000 for flow in scenario.flows)
    assert all(link.jitter_s > 0 for link in scenario.links if link.b == "left")
    assert "FQ-CoDel 133 packets" in repr(designed)


@pytest.mark.parametrize("engine", ENGINES)
def test_defaults_of_a_dumbbell_run_on_each_engine(engine):
    for control in sorted(ENGINES[engine].congestion_controls):
        ecn = {"ecn": True} if control == "dctcp" else {}
        scenario = lab.dumbbell([control], engine=engine, **ecn).scenario
        assert ENGINES[engine].refusal(scenario) == ""


@pytest.fixture(scope="module")
def run():
    """A run of two flows; flow and queue have few samples."""
    scenario = lab.dumbbell(["cubic", "vegas"], rtt_ms=[20, 40], duration_s=2).scenario
    times = [0.5, 1.0, 1.5, 2.0]
    flows = pd.DataFrame({"flow": ["cubic", "vegas"], "throughput_bps": [6e6, 3.5e6]})
    samples = {"time_s": times, "cwnd_bytes": 14480.0, "rtt_s": 0.05, "throughput_bps": 5e6}
    rows = [pd.DataFrame(samples | {"flow": name}) for name in flows["flow"]]
    rows += [pd.DataFrame({"time_s": times, "queue_packets": 7.0, "link": "bottleneck:ab"})]
    series = pd.concat(rows).assign(segment_bytes=1448.0)
    return LiveRun(flows, series, scenario, "ns3", ROOT)


def test_the_plot_of_a_run_has_four_panels_on_one_time_axis(run):
    picture = run.plot()
    panels = picture.chart.to_dict()["vconcat"]
    titles = [panel["encoding"]["y"]["title"].split()[0] for panel in panels]
    assert titles == ["Window", "Round", "Queue", "Rate"]
    assert {tuple(panel["encoding"]["x"]["scale"]["domain"]) for panel in panels} == {(0, 2)}
    drawn = [set(panel.data["value"].dropna()) for panel in picture.chart.vconcat]
    assert drawn == [{10.0}, {50.0}, {7.0}, {5.0}]
    assert not missing_from(picture.alt, "cubic 6 Mbit/s", "vegas 3.5 Mbit/s")


def test_known_differences_are_those_of_the_runs_algorithms_and_engine(run):
    known = {difference.id for difference in run.differences}
    assert {"vegas_base", "cubic_hystart"} <= known
    # Of another variant, or of a queue that the run does not have.
    assert not {"bbr_queue", "pie_start_up", "reno_second_loss"} & known
    reno = lab.dumbbell(["reno"]).scenario
    assert "vegas_base" not in {entry.id for entry in differences_of(ROOT, reno, "ns3")}
    shown = differences_table({"ns3": run.differences}).data
    assert shown.startswith("<details><summary>")
    (entry,) = (entry for entry in run.differences if entry.id == "vegas_base")
    assert entry.engines["ns3"].replace("'", "&#x27;") in shown


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_shown_only_for_long_runs_on_a_terminal_and_then_erased(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setattr(live, "PATIENCE_S", 0.05)
    with live._progress("ns3: simulating 30 s", 20.0):
        time.sleep(0.2)
    assert not missing_from(screen.getvalue(), "ns3: simulating 30 s", "20 s")
    assert screen.getvalue().endswith(" \r")
    monkeypatch.setattr(live, "PATIENCE_S", 5.0)
    quick = Terminal()
    monkeypatch.setattr(sys, "stdout", quick)
    with live._progress("ns3", 20.0):
        pass
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(live, "PATIENCE_S", 0.0)
    with live._progress("ns3", 20.0):
        time.sleep(0.1)
    assert not quick.getvalue() and not sys.stdout.getvalue()


def test_a_stored_scenario_can_be_simulated(collection):
    """`scenario` returns a JSON document, which `simulate` takes."""
    program = ROOT / ENGINES["ns3"].program(ROOT, live.BUILT)
    if not program.is_file():
        pytest.skip("ns3 is not built")
    document = dict(scenario_of(collection)) | {"duration_s": 3.0}
    document["flows"] = [flow | {"stop_s": 3.0} for flow in document["flows"]]
    result = run_live(ROOT, document, "ns3")
    assert set(result.flows["flow"]) == {flow["id"] for flow in document["flows"]}
    assert (result.flows["base_rtt_ms"] > 0).all()
