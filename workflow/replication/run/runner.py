"""The runner: a small process that runs the simulators of a batch, here or in a container.

It reads one line of JSON a run from standard input, {command, work, memory_bytes, time_s}, and
answers with one, {status, wall_s, cpu_s, peak_memory_bytes}, {cannot_start} or {error}; {read}, a
file's name, is answered by {text}, empty if there is no such file. It ends with its input: when
the job that started it is gone, so are the runner, its container and what runs in it.

Small, because a process's peak resident size starts with that of what forked it, and a fork copies
the page tables of all that a batch has imported. Standard library alone, like `process`.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
from pathlib import Path
from typing import Any

from replication.run.process import Limits, isolate, run_confined
from replication.run.resident import resident


def _end_with_input() -> None:
    """Leave at once if the input has ended; nothing else comes while a run is on."""
    if select.select([0], [], [], 0)[0]:
        os._exit(1)


def _reap() -> None:
    """Collect what finished programs left behind: nobody else does, where we are process 1."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _has_network() -> bool:
    """Return whether a run would see more of a network than its own loopback."""
    devices = Path("/proc/net/dev").read_text(encoding="utf-8").splitlines()[2:]
    return bool({line.split(":")[0].strip() for line in devices} - {"lo"})


def answer(request: dict[str, Any], refused: bool) -> dict[str, Any]:
    """Run what `request` asks for, unless it is `refused` a run; return what to answer."""
    if "read" in request:
        file = Path(request["read"])
        return {"text": file.read_text(encoding="utf-8") if file.is_file() else ""}
    limits = Limits(int(request["memory_bytes"]), float(request["time_s"]))
    if refused:
        return {"error": "the container has a network, and the kernel refuses to take it away"}
    try:
        command, work = request["command"], Path(request["work"])
        status, usage = run_confined(command, limits, work, _end_with_input, resident(command[0]))
    except OSError as error:
        return {"cannot_start": error.strerror}
    return {"status": status} | usage.as_dict()


def main(refuse_network: bool = True) -> None:
    """Serve requests until the input ends.

    With `refuse_network`, nothing runs where the network cannot be taken away from it.
    """
    isolate()
    refused = refuse_network and _has_network()
    with os.fdopen(os.dup(0), "rb", buffering=0) as requests:
        for line in iter(requests.readline, b""):
            print(json.dumps(answer(json.loads(line), refused)), flush=True)
            _reap()
    sys.exit(0)
