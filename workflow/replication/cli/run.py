"""The command that runs one scenario outside the workflow, for a closer look."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replication.cli.option import DATA, HERE, Data, Root
from replication.study.errors import InputError

if TYPE_CHECKING:
    from replication.study.scenario import Scenario

#: Columns of the printed table: what they are called, in flows.csv and here, and their unit in SI.
_SHOWN = (
    ("throughput_bps", "throughput Mbit/s", 1e6),
    ("goodput_bps", "goodput Mbit/s", 1e6),
    ("delay_mean_s", "delay ms", 1e-3),
    ("delay_p95_s", "95 % delay ms", 1e-3),
    ("rtt_mean_s", "RTT ms", 1e-3),
    ("packets_sent", "sent", 1),
    ("packets_dropped", "dropped", 1),
    ("retransmissions", "retransmitted", 1),
    ("timeouts", "timeouts", 1),
)


def run(
    scenario: Annotated[
        str, typer.Argument(help="A JSON file, or a scenario's id from the report or a design.")
    ],
    output: Annotated[Path, typer.Option(help="Folder for flows.csv and series.csv.")] = Path(
        "run"
    ),
    engine: Annotated[str, typer.Option(help="ns3, ns2 or linux.")] = "ns3",
    root: Root = HERE,
    data: Data = DATA,
) -> None:
    """Run one scenario on an engine, print its flows and write its tables.

    Example: replicate run 0123456789abcdef --engine ns3 --output /tmp/look
    """
    from replication.engines.lowering import PLAN_FILE, SCENARIO_FILE
    from replication.plan.single_run import require_engine, run_single
    from replication.run.store import TABLES

    require_engine(engine)
    found = find_scenario(data, scenario)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "run"
        used, tables = run_single(root, data, found, engine, work)
        output.mkdir(parents=True, exist_ok=True)
        names = (*TABLES, SCENARIO_FILE, PLAN_FILE)
        for name in names:
            shutil.copyfile(work / name, output / name)
    print(flow_table(tables["flows.csv"].to_pylist()))
    print(f"{output}: {', '.join(names)} ({used.cpu_s:.2f} s of CPU)")


def find_scenario(data: Path, scenario: str) -> Scenario:
    """Return the scenario in a file, or the designed one with an id.

    Raises
    ------
    InputError
        The file cannot be read or is not a scenario, or no design has the id.
    """
    from replication.study.files import read_json, read_model
    from replication.study.scenario import Scenario

    if scenario.endswith(".json") or Path(scenario).is_file():
        return read_model(Path(scenario), Scenario)
    folder = data / "design" / "scenarios"
    explained = sorted((data / "sensitivity").glob("*/explained_scenarios.json"))
    mapped = sorted((data / "maps").glob("*/*.scenarios.json"))
    for path in [*sorted(folder.glob("*.json")), *explained, *mapped]:
        document = read_json(path).get(scenario)
        if document is not None:
            return Scenario.model_validate(document)
    raise InputError(
        f"scenario: no design in {folder} has {scenario!r}; give a JSON file, or an id from the "
        "report or from a design's `scenario` column"
    )


def flow_table(flows: Iterable[Mapping[str, Any]]) -> str:
    """Return the flows as a table of text, a line each."""
    rows = [["flow", "kind", *(title for _, title, _ in _SHOWN)]]
    for flow in flows:
        numbers = (
            "" if flow[key] is None else f"{flow[key] / unit:.6g}" for key, _, unit in _SHOWN
        )
        rows.append([flow["flow"], flow["kind"], *numbers])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            word.ljust(width) if place < 2 else word.rjust(width)
            for place, (word, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
