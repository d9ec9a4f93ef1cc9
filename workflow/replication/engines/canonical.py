"""Canonical scenarios of an engine: short, and together they execute nearly all of its program."""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from replication.base.errors import RunError
from replication.base.files import digest_of, read_yaml
from replication.engines.input_file import INPUT_FILE, write_inputs
from replication.engines.model import Engine
from replication.study.scenario import Scenario

CANONICAL = Path("workflow/engines/canonical.yaml")
_OF_A_SCENARIO = ("duration_s", "host")
_TABLES = ("flows.csv", "series.csv")


def canonical_scenarios(root: Path, engine: Engine) -> list[Scenario]:
    """Return the canonical scenarios of an engine, without the flows that it refuses."""
    document = read_yaml(root / CANONICAL)
    scenarios = (_scenario(document, entry, engine) for entry in document["scenarios"])
    return [scenario for scenario in scenarios if scenario and not engine.refusal(scenario)]


def digests_of_runs(engine: Engine, program: Path, scenarios: Sequence[Scenario]) -> dict[str, str]:
    """Return a hash of the tables that a program writes in each scenario, by its id.

    Raises
    ------
    RunError
        The program fails in one of them.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        digests = pool.map(partial(_digest_of_run, engine, program), scenarios)
        return {scenario.id: digest for scenario, digest in zip(scenarios, digests, strict=True)}


def _digest_of_run(engine: Engine, program: Path, scenario: Scenario) -> str:
    with tempfile.TemporaryDirectory(prefix="canonical-") as folder:
        work = Path(folder)
        write_inputs(work, scenario, engine)
        command = [str(program), "--input", str(work / INPUT_FILE), "--output", str(work)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RunError(f"{program}: fails in scenario {scenario.id}: {done.stderr.strip()}")
        return digest_of_tables({name: (work / name).read_bytes() for name in _TABLES})


def digest_of_tables(tables: Mapping[str, bytes]) -> str:
    """Return a hash of the flows and series of a run; run.json names the program's version."""
    return digest_of(b"".join(tables[name] for name in _TABLES))[:16]


def _scenario(document: dict[str, Any], entry: dict[str, Any], engine: Engine) -> Scenario | None:
    """Return a scenario with the flows that an engine does not refuse; None without any."""
    access, bottleneck = document["links"]
    settings = {name: entry[name] for name in _OF_A_SCENARIO if name in entry}
    bare = document["scenario"] | {"monitors": document["monitors"]} | settings
    flows = []
    for flow in _flows(document, entry, engine):
        alone = Scenario.model_validate(bare | {"links": [access, bottleneck], "flows": [flow]})
        if not engine.refusal(alone):
            flows.append(flow)
    if not flows:
        return None
    changes = dict(entry["bottleneck"])
    if changes.get("loss_ab", {}).get("kind") == "listed":
        changes["loss_ab"] = changes["loss_ab"] | {"flow": flows[0]["id"]}
    links = [access, bottleneck | changes]
    return Scenario.model_validate(bare | {"links": links, "flows": flows})


def _flows(
    document: dict[str, Any], entry: dict[str, Any], engine: Engine
) -> Iterator[dict[str, Any]]:
    """Yield the flows of a scenario; `all` means each of the engine's congestion controls."""
    of_engine = document["engines"][engine.name]
    tcp = document["tcp"] | of_engine["tcp"]
    number = 0
    for given in entry["flows"]:
        control = given.get("congestion_control")
        controls = of_engine["congestion_controls"] if control == "all" else [control]
        for control in controls:
            # Flows that start one after the other, on segments of different sizes.
            flow = document["flow"] | {"start_s": 0.02 * number}
            if control:
                sizes = {"segment_bytes": 1000 + 4 * number}
                flow |= tcp | sizes | {"kind": "tcp", **given, "congestion_control": control}
            else:
                flow |= given
            number += 1
            yield flow | {"id": f"{control or 'cbr'}-{number}"}
