"""The native runtime: the engines' programs themselves, started by a runner of ours."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from replication.run.environment import core
from replication.run.process import Limits, Usage
from replication.run.runner_process import RunnerProcess
from replication.run.runtime import program_command

_MAIN = """
import sys
sys.path.insert(0, sys.argv[1])
from replication.run.runner import main
main(refuse_network=False)
"""


def written_version(program: Path) -> str:
    """Return what a program's builder wrote beside it, or nothing."""
    beside = program.parent / "version"
    return beside.read_text(encoding="utf-8") if beside.is_file() else ""


def _runner() -> RunnerProcess:
    package = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-ISB", "-c", _MAIN, str(package)]
    return RunnerProcess("runner", command, core())


@dataclass(frozen=True)
class Native:
    """A program of this machine; `image` is the one that we are in ourselves, if any."""

    program: Path
    image: str | None = None
    runner: RunnerProcess = field(default_factory=_runner)

    def run(
        self, work: Path, limits: Limits, waiting: Callable[[], None], trace: bool = False
    ) -> Usage:
        """Run the program on the plan in `work`.

        Raises
        ------
        RunError
            It could not start, failed, or went over a limit; the message holds its last words.
        """
        command = program_command(str(self.program), str(work), trace)
        return self.runner.run(command, limits, (work, str(work)), waiting)

    def written_version(self, limits: Limits) -> str:
        """Return what the program's builder wrote beside it, or nothing."""
        return written_version(self.program)

    def record(self) -> dict[str, str | None]:
        """Return that no container was started, and the image that we are in, if any."""
        return {"runtime": "native", "image": self.image}

    def close(self) -> None:
        """End the runner."""
        self.runner.close()
