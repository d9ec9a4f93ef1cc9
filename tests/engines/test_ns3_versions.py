"""Other versions of ns-3: our program builds, reports the version, and loses no packets.

An earlier wheel, and Debian's package, where it is installed, as a folder that NS3_PREFIX names.
"""

import os
import subprocess
from pathlib import Path

import pytest
from measurements.bench import write_input
from measurements.scenarios import dumbbell, pfifo, red, tcp
from replication.design.config import load_study, load_tier
from replication.design.design import design_study
from replication.engines.catalogue import chosen_engine
from replication.engines.ns3 import PREFIX, WHEEL_VERSIONS

from tests.engines.engine_bench import Bench
from tests.workflow.project import ROOT

DEBIAN = "3.37"
HAS_DEBIAN = pytest.mark.skipif(
    not Path("/usr/include/ns3/core-module.h").is_file(), reason="libns3-dev is not installed"
)
CONTROLS = sorted(chosen_engine("ns3").congestion_controls)


@pytest.fixture(scope="module", params=[WHEEL_VERSIONS[0], pytest.param(DEBIAN, marks=HAS_DEBIAN)])
def version(request):
    """Return a version other than the default."""
    return request.param


@pytest.fixture(scope="module")
def other(version, tmp_path_factory):
    """Return the version's bench, built as a user would: on an installed ns-3, or on none."""
    env = os.environ | {PREFIX: "/usr" if version == DEBIAN else ""}
    command = ["make", "engines", "ENGINES=ns3", f"NS3_VERSION={version}"]
    made = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[-4000:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PREFIX, env[PREFIX])
        program = chosen_engine("ns3", version).program(ROOT, Path("data/reproduced"))
    return Bench("ns3", ROOT / program, tmp_path_factory.mktemp("other"))


def release(version):
    return ".".join(version.split(".")[:2])


def check_conserved(result, version):
    """Check the version, and that every packet of every flow is accounted for."""
    assert result.run["version"] == release(version)
    for flow in result.flows:
        sent, *ends = result.packets(flow)
        assert sent == sum(ends) > 0


@pytest.mark.parametrize("control", CONTROLS)
def test_every_congestion_control_runs(other, version, control):
    changes = {"timestamps": True, "sack": control not in ("tahoe", "reno")}
    changes |= {"ecn": True} if control == "dctcp" else {}
    flow = tcp("t", control, **changes, cubic_tcp_friendliness=False)
    result = other.run(dumbbell([flow], duration_s=5, queue=red(5, 15)))
    check_conserved(result, version)
    # A quarter of the link shows that data flow, not how well.
    assert result.number("t", "throughput_bps") > 0.5e6


def test_a_window_filled_to_the_byte_does_not_crash_ns3(other, version):
    # ns-3.39 would then send a segment of no bytes; only with limited transmit, after a loss.
    common = {"segment_bytes": 536, "maximum_window_bytes": 131072, "delayed_ack_segments": 2}
    common |= {"limited_transmit": True, "sack": True}
    flows = [
        tcp(f"t{i}", "newreno", source=f"s{i}", destination=f"d{i}", start_s=0.001 * i, **common)
        for i in range(10)
    ]
    path = {"rate_bps": 1e8, "delay_s": 0.03, "access_bps": 1e8, "access_delay_s": 1e-7}
    path |= {"pairs": 10, "queue": pfifo(1000) | {"device_queue_packets": 100}}
    check_conserved(other.run(dumbbell(flows, duration_s=2, **path)), version)


def test_an_algorithm_that_a_version_of_ns3_lacks_is_refused_by_name(other, version, tmp_path):
    study, tier = load_study(ROOT, "dzivhani"), load_tier(ROOT, "quick")
    runs = {r.levels["variant"]: r for r in design_study(study, tier, ["ns3"], version)}
    for variant, run in runs.items():
        brief = run.scenario.model_copy(update={"duration_s": 1.0})
        # As for the default version, which has it: the program must not run without it.
        path = write_input(tmp_path / variant, "ns3", brief.model_dump(mode="json"))
        done = other.invoke("--input", path, "--output", path.with_name("out"))
        assert done.returncode == (2 if run.refusal else 0), done.stderr
        if run.refusal:
            assert "cubic_tcp_friendliness" in done.stderr and release(version) in done.stderr
