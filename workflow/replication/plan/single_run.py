"""A single run: one scenario on one engine as this project's configuration has it, at once."""

from __future__ import annotations

from pathlib import Path

from replication.engines.catalogue import ENGINES
from replication.engines.lowering import write_inputs
from replication.plan.config import load_config
from replication.run.gather import RunTables, check_run
from replication.run.process import Limits, Usage
from replication.run.runtime import Launch, find_inside, make_runtime
from replication.study.errors import InputError
from replication.study.scenario import Scenario


def require_engine(name: str) -> None:
    """Raise InputError unless there is an engine of that name."""
    if name not in ENGINES:
        raise InputError(f"engine: {name!r} is unknown; there are {', '.join(ENGINES)}")


def run_single(
    root: Path, data: Path, scenario: Scenario, engine: str, work: Path
) -> tuple[Usage, RunTables]:
    """Run a scenario in the folder `work`, which is made; return what it used, and its tables.

    Parameters
    ----------
    root, data
        The project's folder and that of its results, below which engines are built.
    scenario, engine
        What to run, and on which engine.
    work
        Where scenario, plan and tables are left.

    Raises
    ------
    InputError
        The engine is not built, or refuses the scenario.
    RunError
        The run failed.
    """
    config = load_config(root / "configs" / "config.yaml")
    inside = find_inside(root, ())
    if inside is not None:
        program = inside.program(engine)
    else:
        program = root / config.engine(engine).program(root, data)
    if inside is None and config.runtime == "native":
        config.engine(engine).require(root)
        if not program.is_file():
            raise InputError(
                f"engine {engine}: is not built; run `make engines ENGINES={engine}` first"
            )
    limits = Limits(config.memory_limit_bytes, config.time_limit_s)
    runtime = make_runtime(root, Launch(config.runtime, engine, program), work.parent, limits)
    try:
        write_inputs(work, scenario, config.engine(engine))
        used = runtime.run(work)
        return used, check_run(work, scenario)
    finally:
        runtime.close()
