"""Our side of the runner: the process that is asked for one run after the other."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from replication.run.process import Limits, Usage
from replication.run.runtime import REBUILD, check_status, container_hint
from replication.study.errors import RunError

#: How much later than the runner's own limit an answer may come before we give it up.
_GRACE_S = 60.0
#: How often `waiting` is called.
_PAUSE_S = 0.05


@dataclass
class RunnerProcess:
    """A runner (see `runner`): started when it is first asked for something.

    `name` is what messages call it; `environment` is all that it gets.
    """

    name: str
    command: list[str]
    environment: dict[str, str]
    _process: subprocess.Popen[bytes] | None = None
    _errors: IO[bytes] = field(default_factory=tempfile.TemporaryFile)

    def run(
        self,
        command: list[str],
        limits: Limits,
        folders: tuple[Path, str],
        waiting: Callable[[], None],
    ) -> Usage:
        """Have `command` run to its end; `folders` are where it works, as we and the runner see it.

        Raises
        ------
        RunError
            It could not start, failed, or went over a limit; the message holds its last words.
        """
        work, inside = folders
        request = {"command": command, "work": inside} | {
            "memory_bytes": limits.memory_bytes,
            "time_s": limits.time_s,
        }
        answer = self.ask(request, limits, waiting)
        if "cannot_start" in answer:
            raise RunError(f"{command[0]}: cannot start: {answer['cannot_start']}; {REBUILD}")
        status = int(answer.pop("status"))
        usage = Usage(**answer)
        check_status(command[0], status, usage, limits, work)
        return usage

    def ask(
        self, request: dict[str, Any], limits: Limits, waiting: Callable[[], None] = lambda: None
    ) -> dict[str, Any]:
        """Send one request and wait for its answer; a runner that gives none is ended.

        Raises
        ------
        RunError
            It could not start, ended, or answered with an error.
        """
        self._process = self._process or self._start()
        assert self._process.stdin is not None and self._process.stdout is not None
        deadline = time.monotonic() + limits.time_s + _GRACE_S
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        line = b""
        while not line.endswith(b"\n"):
            waiting()
            if select.select([self._process.stdout], [], [], _PAUSE_S)[0]:
                part = os.read(self._process.stdout.fileno(), 1 << 16)
                if not part:
                    raise RunError(f"{self.name}: {self._last_words()}")
                line += part
            elif time.monotonic() > deadline:
                self.close()
                raise RunError(f"{self.name}: no answer from the runner")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RunError(f"{self.name}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the runner: it ends with its input."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(timeout=_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=self.environment,
            )
        except OSError as error:
            raise RunError(f"{self.command[0]}: cannot start: {error.strerror}") from None

    def _last_words(self) -> str:
        self.close()
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace").strip().splitlines()
        last = words[-1] if words else "it ended without a word"
        return last + container_hint("\n".join(words))
