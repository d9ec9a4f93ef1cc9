"""ns-3 from its release's sources gives the bytes that the wheel gives (`make test-source`)."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from engine_bench import write_plan
from replication.compare.conformance import run_conformance
from replication.compare.conformance_model import load_conformance
from replication.engines.ns3_source import COMPILER, build_ns3
from replication.plan.config import load_study, load_tier, study_ids
from replication.plan.design import design_study
from replication.run.runtime import Launch

ROOT = Path(__file__).parents[2]
MINE = ROOT / "workflow/engines/ns3"
pytestmark = pytest.mark.source


def linked(program):
    """Return the folders of the libraries of ns-3 that a program runs on."""
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    paths = [Path(line.split()[2]) for line in said.splitlines() if "libns3" in line]
    return {path.resolve().parent for path in paths}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Return our program on the wheel, and on what is built from sources."""
    folder = tmp_path_factory.mktemp("source")
    wheel = folder / "wheel/ns3"
    lock = next((MINE / "wheels").glob("3.44*.lock"))
    command = ["replicate", "step", "fetch-wheel", "--lock", lock, "--output", wheel]
    subprocess.run(command, check=True)
    build_ns3(ROOT, folder / "built/ns3", 2)
    for prefix, compiler in ((wheel, "g++"), (folder / "built/ns3", COMPILER)):
        words = [f"NS3_PREFIX={prefix}", f"BUILD={prefix.parent / 'program'}", f"CXX={compiler}"]
        subprocess.run(["make", "--silent", "-C", MINE, *words], check=True)
    found = [folder / name / "program/replicate-ns3" for name in ("wheel", "built")]
    assert linked(found[0]) == {(wheel / "lib64").resolve()}
    assert linked(found[1]) == set(), "ns-3 is not part of the program"
    return found


def tables(program, folder, scenario):
    """Return the bytes of all that a program writes of a scenario."""
    folder.mkdir(parents=True)
    plan = write_plan(folder, "ns3", scenario)
    out = folder / "out"
    subprocess.run([program, "--plan", plan, "--output", out], check=True)
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.mark.parametrize("study", study_ids(ROOT))
def test_every_table_of_a_study_is_the_same(programs, study, tmp_path):
    runs = design_study(load_study(ROOT, study), load_tier(ROOT, "quick"), ["ns3"])
    scenarios = {run.scenario_id: run.scenario for run in runs if not run.refusal}
    assert scenarios

    def differs(name):
        scenario = scenarios[name].model_dump(mode="json")
        both = [
            tables(program, tmp_path / f"{number}" / name, scenario)
            for number, program in enumerate(programs)
        ]
        assert "flows.csv" in both[0]
        return both[0] != both[1]

    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(scenarios, pool.map(differs, scenarios), strict=True))
    assert not [name for name, other in found.items() if other]


def test_both_conform_alike(programs, tmp_path):
    document = load_conformance(ROOT)
    both = []
    for number, program in enumerate(programs):
        output = tmp_path / f"{number}/conformance/ns3.csv"
        run_conformance(document, ROOT, Launch("native", "ns3", program), "f", output)
        both.append({path.name: path.read_bytes() for path in output.parent.iterdir()})
    assert both[0] == both[1]
