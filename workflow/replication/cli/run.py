"""The command that runs one scenario again, outside the workflow, for a closer look."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from replication.cli.option import DATA, HERE, Data, Root
from replication.study.errors import InputError

if TYPE_CHECKING:
    from replication.study.scenario import Scenario


def run(
    scenario: Annotated[str, typer.Argument(help="A scenario's id, from the report or a design.")],
    output: Annotated[Path, typer.Option(help="Folder for flows.csv and series.csv.")] = Path(
        "run"
    ),
    engine: Annotated[str, typer.Option()] = "ns3",
    root: Root = HERE,
    data: Data = DATA,
) -> None:
    """Run one scenario again and write its tables.

    Example: replicate run 0123456789abcdef --output /tmp/look
    """
    print(rerun(root, data, scenario, engine, output))


def rerun(root: Path, data: Path, scenario_id: str, engine: str, output: Path) -> str:
    """Run the scenario and copy its tables to `output`; return a line that says so."""
    from replication.engines.lowering import PLAN_FILE, SCENARIO_FILE
    from replication.plan.single_run import require_engine, run_single
    from replication.run.store import TABLES

    require_engine(engine)
    found = find_scenario(data, scenario_id)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "run"
        used, _ = run_single(root, data, found, engine, work)
        output.mkdir(parents=True, exist_ok=True)
        names = (*TABLES, SCENARIO_FILE, PLAN_FILE)
        for name in names:
            shutil.copyfile(work / name, output / name)
    return f"{output}: {', '.join(names)} ({used.cpu_s:.2f} s of CPU)"


def find_scenario(data: Path, scenario_id: str) -> Scenario:
    """Return a designed scenario; InputError if no design knows the id."""
    from replication.study.scenario import Scenario

    folder = data / "design" / "scenarios"
    explained = sorted((data / "sensitivity").glob("*/explained_scenarios.json"))
    mapped = sorted((data / "maps").glob("*/*.scenarios.json"))
    for path in [*sorted(folder.glob("*.json")), *explained, *mapped]:
        from replication.study.files import read_json

        scenario = read_json(path).get(scenario_id)
        if scenario is not None:
            return Scenario.model_validate(scenario)
    raise InputError(
        f"scenario: no design in {folder} knows {scenario_id!r}; take an id from the report "
        "or from a design's `scenario` column"
    )
