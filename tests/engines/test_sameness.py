"""Changed sources of an engine join its generation only if no result can differ."""

import re
import shutil
import subprocess
import sys

import pytest
import yaml
from replication.base.errors import InputError
from replication.base.files import read_yaml
from replication.compare.sameness import Sameness
from replication.engines import model
from replication.engines.canonical import canonical_scenarios, digests_of_runs
from replication.engines.catalogue import ENGINES, NS2
from replication.engines.generation import load_generation, write_generation

from tests.workflow.project import ROOT

CANONICAL = "workflow/engines/canonical.yaml"
#: A change that moves nothing, one of a line that is never executed, and one of all results.
EQUAL = ("common/scenario.py", "path.append(hop)", "path += [hop]")
UNEXECUTED = ("ns2/program/agents.py", "ns2 has no congestion control", "ns2 lacks")
OTHER = ("ns2/program/orders.py", "flow.stop_ns - 1)", "flow.stop_ns - 10**9)")


def test_an_engines_program_gives_the_results_of_its_recorded_generation(bench):
    engine = ENGINES[bench.name]
    scenarios = canonical_scenarios(ROOT, engine)[::4]
    listed = load_generation(ROOT, bench.name).canonical
    expected = {scenario.id: listed[scenario.id] for scenario in scenarios}
    program = engine.own_program(ROOT)
    same = digests_of_runs(engine, bench.program, scenarios) == expected
    assert same == (program is None or program.as_pinned)


@pytest.fixture
def project(ns2_program, tmp_path):
    """Return a copy of the project with one study, and a generation of its sources."""
    for name in ("workflow/engines", "configs/tiers", "configs/studies/nishitha"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("configs/config.yaml", "data/published/nishitha.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    document = read_yaml(tmp_path / CANONICAL)
    document["scenarios"] = document["scenarios"][:1]
    (tmp_path / CANONICAL).write_text(yaml.safe_dump(document))
    write_generation(tmp_path, "ns2", sameness(tmp_path).new_generation())
    return tmp_path


def sameness(root):
    """Build the program of ns-2 in a project; return its comparison with the generation."""
    data = root / "data/reproduced"
    build = NS2.program(root, data).parent
    command = ["make", "--silent", "-C", str(root / "workflow/engines/ns2"), f"BUILD={build}"]
    subprocess.run([*command, f"PYTHON={sys.executable}"], check=True)
    return Sameness(root, data, NS2)


def plant(root, change):
    """Change the first place in a file of the engine's sources."""
    name, before, after = change
    path = root / "workflow/engines" / name
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after, 1))
    model._digest.cache_clear()


def test_a_source_change_without_effect_on_results_keeps_all_runs_valid(project):
    fingerprint, key = NS2.fingerprint(project), NS2.build_key(project)
    plant(project, EQUAL)
    assert NS2.build_key(project) == NS2.fingerprint(project) != fingerprint
    extended = sameness(project).extended(load_generation(project, "ns2"))
    write_generation(project, "ns2", extended)
    assert NS2.fingerprint(project) == fingerprint
    assert NS2.build_key(project) != key
    assert re.findall(r"\d+", extended.sources[-1].reason)[:2] == ["1", "5"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (UNEXECUTED, "lines have changed that no canonical scenario executes"),
        (OTHER, "canonical scenario .* has other results"),
    ],
)
def test_a_source_change_that_could_change_results_outdates_all_runs(project, change, message):
    plant(project, change)
    with pytest.raises(InputError, match=message):
        sameness(project).extended(load_generation(project, "ns2"))
    assert NS2.fingerprint(project) == NS2.build_key(project)


def test_a_source_change_seen_only_in_runs_of_studies_outdates_all_runs(project):
    before = load_generation(project, "ns2")
    plant(project, OTHER)
    unnoticed = sameness(project).new_generation().model_copy(update={"runs": before.runs})
    with pytest.raises(InputError, match=r"scenario .*\(nishitha, homogeneous,"):
        sameness(project).extended(unnoticed)


def test_a_study_that_runs_on_its_primary_engine_alone_asks_other_engines_for_no_run(tmp_path):
    for name in ("configs/tiers", "configs/studies/rebbr"):
        shutil.copytree(ROOT / name, tmp_path / name)
    kinds = {
        name: Sameness(tmp_path, tmp_path / "data", ENGINES[name])._kinds()
        for name in ("ns3", "linux")
    }
    assert not kinds["ns3"] and kinds["linux"]
