"""Bad scenarios: refused before a program is started, or run by it to the end, nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from replication.engines.catalogue import ENGINES
from replication.engines.cost import link_crossings
from replication.engines.lowering import PLAN_FILE, write_inputs
from replication.study.errors import InputError
from replication.study.scenario import Scenario

from tests.faults.conftest import ROOT, number
from tests.faults.hostile import MARK, STRINGS, mutate
from tests.faults.sanitized import ENVIRONMENT, build_sanitized
from tests.workflow.project import program

sys.path.insert(0, str(ROOT / "tests" / "engines"))  # its modules are imported by file there
from engine_scenarios import cbr, codel, droptail, dumbbell, pfifo, pie, red, tcp

RUNS = number("RUNS", 60)
#: CPU seconds beyond which a scenario is not bad but large, and is not run here.
LARGEST_S = 0.6
#: A run that takes this long hangs: a hundred times what any case here is expected to cost.
HANG_S = 120
#: What the names of output folders begin with, whatever follows.
OUTPUT = "out"


@pytest.fixture(scope="module")
def programs():
    """Return the program of each engine: ns-3's under sanitizers if that is asked for."""
    found = {name: program(name) for name in ENGINES_HERE}
    if number("SANITIZE", 0):
        prefix = next(found["ns3"].parents[1].glob("ns3-wheel-3.44*/ns3")).resolve()
        found["ns3"] = build_sanitized(prefix, ROOT / "build" / "sanitized")
    return found


ENGINES_HERE = ("ns3", "ns2")
CONTROLS = {
    "ns3": ("newreno", "cubic", "reno", "tahoe", "vegas", "westwood_plus", "bbr", "highspeed"),
    "ns2": ("newreno", "cubic", "reno", "tahoe", "vegas"),
}
LINUX = {"sack": True, "limited_transmit": True}
QUEUES = (droptail(20), {"kind": "droptail", "limit_bytes": 20000}, pfifo(20), red(5, 15))
SHAPER = {"kind": "token_bucket", "burst_bytes": 1600, "line_rate_bps": 1e9}
FRAMES = {"frame_bytes": 14, "shaper_ba": SHAPER}
QUEUES += (codel(), codel(kind="fq_codel"), pie())


@st.composite
def bad_scenarios(draw, engine):
    """Return a valid scenario, changed in up to four places."""
    control = draw(st.sampled_from(CONTROLS[engine]))
    extra = LINUX if control in ("cubic", "bbr") else {}
    flows = [tcp("t", control, **extra), cbr("c", 1e5, stop_s=0.5)]
    flows[0]["initial_ssthresh_bytes"] = draw(st.sampled_from([None, 8000]))
    flows[0]["connect_s"] = draw(st.sampled_from([None, 0]))
    flows[0]["start_s"] = draw(st.sampled_from([0, 0.25]))
    document = dumbbell(
        flows,
        duration_s=draw(st.sampled_from([0.5, 1, 2.5])),
        queue=draw(st.sampled_from(QUEUES)),
        loss=draw(st.sampled_from([None, {"kind": "random", "probability": 0.05}])),
        access_bps=1e7,
    )
    if engine == "ns3":
        document["links"][0] |= draw(st.sampled_from([{}, {"shaper_ab": SHAPER}, FRAMES]))
    document = json.loads(json.dumps(document))  # nothing is shared within it
    for _ in range(draw(st.integers(0, 3))):
        mutate(draw, document)
    return document


def large(engine, document):
    """Return whether running it would take long because it asks for much."""
    try:
        scenario = Scenario.model_validate(document)
    except ValidationError:
        return False
    samples = scenario.duration_s / scenario.sampling_interval_s
    return ENGINES[engine].cost_s(link_crossings(scenario)) > LARGEST_S or samples > 1e5


def write(folder, document, engine):
    """Write a scenario and its plan."""
    write_inputs(folder, Scenario.model_validate(document), ENGINES[engine])


def check(done, scenario, folder, before):
    """Require results, or ns-2's refusal of a lost SYN in one line, and nothing else anywhere."""
    assert done.returncode == 0 or "SYN" in done.stderr, (done.returncode, done.stderr[-3000:])
    after = {str(p.relative_to(folder)) for p in folder.rglob("*")}
    beside = {name for name in after - before if not name.startswith(OUTPUT)}
    assert not beside, f"written beside its output: {beside}"
    assert not any(Path(name).name.startswith(MARK) for name in after), after
    if done.returncode == 2:
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert after == before, after - before
        return "refused"
    assert done.stderr == ""
    output = {Path(name).name for name in after - before if (folder / name).is_file()}
    assert output == {"flows.csv", "series.csv", "run.json"}
    flows = next(folder.rglob("flows.csv")).read_text().splitlines()
    assert len(flows) == 1 + len(scenario["flows"])
    return "right"


@pytest.mark.parametrize("engine", ENGINES_HERE)
def test_no_scenario_breaks_a_program(engine, programs, tally, tmp_path_factory):
    kind = "under AddressSanitizer and UBSan" if number("SANITIZE", 0) else "as built"
    title = f"bad scenarios through {programs[engine].name}" + (
        f", {kind}" if engine == "ns3" else " and its Tcl"
    )
    skipped = 0

    @seed(20260107)
    @settings(
        deadline=None,
        max_examples=RUNS,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(document=bad_scenarios(engine), output=st.sampled_from(("out", *STRINGS)))
    def run(document, output):
        nonlocal skipped
        if large(engine, document):
            skipped += 1
            return
        # A name that a file system takes, somewhere below the folder, whatever else it holds.
        output = f"{OUTPUT}{output}".replace("\0", "").replace("/", "_")[:100]
        folder = tmp_path_factory.mktemp("case")
        (folder / "work").mkdir()
        with tally.trial("inputs", f"program-{engine}", title) as trial:
            trial.attempt(lambda: write(folder, document, engine), ValidationError, InputError)
            if trial.ended == "refused":
                return
            before = {str(p.relative_to(folder)) for p in folder.rglob("*")}
            done = subprocess.run(
                [programs[engine], "--plan", folder / PLAN_FILE, "--output", folder / output],
                cwd=folder / "work",
                env={"PATH": "/usr/bin:/bin", "HOME": str(folder)} | ENVIRONMENT,
                capture_output=True,
                text=True,
                timeout=HANG_S,
                check=False,
            )
            check(done, document, folder, before)
            trial.exited(done.returncode)

    run()
    tally.notes[f"program-{engine}"] = f"{skipped} cases too large to run were left out"
