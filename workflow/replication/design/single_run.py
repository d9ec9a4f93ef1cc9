"""One run of a scenario, outside the workflow."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from replication.base.errors import InputError
from replication.design.config import Paths, load_config
from replication.design.start import Start
from replication.engines.input_file import write_inputs
from replication.simulate.process import Usage
from replication.simulate.run import RunTables, check_run
from replication.simulate.runtime import Launch, find_inside, make_runtime
from replication.study.scenario import Scenario


def run_single(
    root: Path,
    data: Path,
    scenario: Scenario,
    engine: str,
    work: Path,
    settings: dict[str, Any] | None = None,
) -> tuple[Usage, RunTables]:
    """Run a scenario in the new folder `work`; return its usage and tables.

    `data` is the folder of results, which contains built engines; `settings` override keys of
    config.yaml. InputError if the engine is not built or refuses the scenario, RunError if the run
    failed.
    """
    start = _start(root, data, settings)
    config, program = start.config, root / start.program(engine)
    if start.is_native:
        config.engine(engine).require(root)
        if not program.is_file():
            raise InputError(f"engine {engine}: is not built; run `make engines ENGINES={engine}`")
    launch = replace(Launch(**start.machine(engine)), program=str(program))
    runtime = make_runtime(root, launch, work.parent)
    try:
        write_inputs(work, scenario, config.engine(engine), root)
        used = runtime.run(work)
        return used, check_run(work, scenario)
    finally:
        runtime.close()


def _start(root: Path, data: Path, settings: dict[str, Any] | None = None) -> Start:
    config = load_config(root / "configs" / "config.yaml", settings)
    return Start(root, config, find_inside(root, ()), Paths(data=data))


def is_built(root: Path, data: Path, engine: str) -> bool:
    """Return whether `run_single` can start an engine: it is built, or runs in an image."""
    start = _start(root, data)
    try:
        if start.is_native:
            start.config.engine(engine).require(root)
            return (root / start.program(engine)).is_file()
    except InputError:
        return False
    return True
