"""Another ns-3: our program builds on it, says which it is, and keeps packets.

An earlier wheel, Debian's package where it is installed, and the default version as a folder that
NS3_PREFIX names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from replication.design.config import load_study, load_tier
from replication.design.design import design_study
from replication.engines.catalogue import chosen_engine
from replication.engines.ns3 import CANONICAL, NS3_VERSION, PREFIX, WHEEL_VERSIONS, canonical_digest
from replication.study.files import read_yaml

from tests.engines.conftest import invoker, linked_ns3, runner
from tests.engines.engine_bench import write_plan
from tests.engines.engine_scenarios import codel, dumbbell, pie, red, tcp

ROOT = Path(__file__).resolve().parents[2]
DEBIAN = "3.37"
HAS_DEBIAN = pytest.mark.skipif(
    not Path("/usr/include/ns3/core-module.h").is_file(), reason="libns3-dev is not installed"
)
VERSIONS = [WHEEL_VERSIONS[0], pytest.param(DEBIAN, marks=HAS_DEBIAN)]
CONTROLS = sorted(chosen_engine("ns3").congestion_controls)


@pytest.fixture(scope="module", params=VERSIONS)
def version(request) -> str:
    """Return a version other than the default."""
    return request.param


def environment(prefix: str | Path) -> dict[str, str]:
    """Return the variables of a user who names an installed ns-3, or none."""
    return os.environ | {PREFIX: str(prefix)}


@pytest.fixture(scope="module")
def program(version) -> Path:
    """Return the version's program, built as a user would."""
    env = environment("/usr" if version == DEBIAN else "")
    command = ["make", "engines", "ENGINES=ns3", f"NS3_VERSION={version}"]
    made = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[-4000:]
    words = ["replicate", "program", "ns3", "--ns3-version", version]
    return Path(subprocess.check_output(words, cwd=ROOT, env=env, text=True).strip())


@pytest.fixture(scope="module")
def run_version(program, tmp_path_factory):
    """Return a function that runs a scenario on the version."""
    return runner("ns3", invoker(program), tmp_path_factory)


def release(version: str) -> str:
    return ".".join(version.split(".")[:2])


def check_conserved(result) -> None:
    """Check that every packet of every flow is accounted for, and that there were some."""
    for flow in result.flows:
        counts = [
            result.number(flow, f"packets_{name}")
            for name in ("sent", "received", "dropped", "in_flight")
        ]
        assert counts[0] == sum(counts[1:]) > 0


def test_it_says_its_own_version(program, version):
    said = subprocess.check_output([program, "--version"], text=True)
    assert said.split()[:2] == ["ns3", release(version)]


@pytest.mark.parametrize("control", CONTROLS)
def test_every_congestion_control_runs(run_version, version, control):
    changes = {"timestamps": True, "sack": control not in ("tahoe", "reno")}
    flow = tcp("t", control, **changes, cubic_tcp_friendliness=False)
    result = run_version(dumbbell([flow], duration_s=5, queue=red(5, 15)))
    check_conserved(result)
    assert result.run["version"] == release(version)
    # A quarter of the link: that data really flow, not how well.
    assert result.number("t", "throughput_bps") > 0.5e6


@pytest.mark.parametrize("queue", [codel(), codel(kind="fq_codel"), pie()], ids=lambda q: q["kind"])
def test_every_queue_runs(run_version, queue):
    result = run_version(dumbbell([tcp("t", "newreno", sack=True)], duration_s=5, queue=queue))
    check_conserved(result)


def test_a_window_full_to_the_byte_does_not_crash_it(run_version):
    # ns-3.39 would then send a segment of no bytes; only with limited transmit, after a loss.
    flows = [
        tcp(
            f"t{i}",
            "newreno",
            source=f"s{i}",
            destination=f"d{i}",
            start_s=0.001 * i,
            segment_bytes=536,
            maximum_window_bytes=131072,
            delayed_ack_segments=2,
            limited_transmit=True,
            sack=True,
        )
        for i in range(10)
    ]
    queue = {"kind": "pfifo", "limit_packets": 1000, "device_queue_packets": 100}
    check_conserved(
        run_version(
            dumbbell(
                flows,
                pairs=10,
                duration_s=2,
                rate_bps=100e6,
                delay_s=0.03,
                access_bps=100e6,
                access_delay_s=1e-7,
                queue=queue,
            )
        )
    )


def test_what_a_version_lacks_is_refused_by_name(program, version, tmp_path):
    study, tier = load_study(ROOT, "dzivhani"), load_tier(ROOT, "quick")
    runs = design_study(study, tier, ["ns3"], version)
    for variant, refusal in {r.levels["variant"]: r.refusal for r in runs}.items():
        scenario = next(r.scenario for r in runs if r.levels["variant"] == variant)
        brief = scenario.model_copy(update={"duration_s": 1.0})
        # As for the default version, which has it: the program must not go on without.
        path = write_plan(tmp_path / variant, "ns3", brief.model_dump(mode="json"))
        done = invoker(program)("--plan", path, "--output", path.with_name("out"))
        assert done.returncode == (2 if refusal else 0), done.stderr
        if refusal:
            assert "cubic_tcp_friendliness" in done.stderr
            assert release(version) in done.stderr


def test_a_point_of_a_study_runs_on_it_and_on_the_default(run_version, run_ns3, version):
    run = design_study(load_study(ROOT, "saxena"), load_tier(ROOT, "quick"), ["ns3"], version)[0]
    scenario = run.scenario.model_dump(mode="json")
    for result, expected in (
        (run_version(scenario), version),
        (run_ns3(scenario), NS3_VERSION),
    ):
        check_conserved(result)
        assert result.run["version"] == release(expected)
        assert result.run["scenario"] == run.scenario_id


def test_the_wheel_writes_what_is_pinned(ns3_program):
    own = chosen_engine("ns3").own_program(ROOT)
    digest = canonical_digest(ns3_program, chosen_engine("ns3"))
    is_pinned = digest == read_yaml(ROOT / CANONICAL)["sha256"]
    assert is_pinned == (own is None or own.as_pinned), digest


def test_a_folder_with_the_same_ns3_stands_for_the_wheel(monkeypatch, tmp_path):
    wheel = linked_ns3()
    wheel_print = chosen_engine("ns3").fingerprint(ROOT)
    prefix = tmp_path / "prefix"
    prefix.symlink_to(wheel.folder)
    monkeypatch.setenv(PREFIX, str(prefix))
    own = chosen_engine("ns3").own_program(ROOT)
    assert chosen_engine("ns3").fingerprint(ROOT) == wheel_print
    assert subprocess.check_output([ROOT / own.path, "--version"], text=True).startswith("ns3 3.44")
    shutil.rmtree((ROOT / own.path).parent)
