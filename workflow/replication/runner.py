"""The runner: what a container of an engine's image does from its start to its end.

It reads one line of JSON a run from standard input, {command, work, memory_bytes, time_s}, and
answers with one, {status, wall_s, cpu_s, peak_memory_bytes} or {error}; {read}, a file's name, is
answered by {text}, empty if there is no such file. It ends with its input:
when the job that started the container is gone, so are the container and what runs in it.
Standard library alone, like `process`.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
from pathlib import Path
from typing import Any

from replication.process import Limits, network_is_isolated, run_confined


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
    others = {line.split(":")[0].strip() for line in devices} - {"lo"}
    return bool(others) and not network_is_isolated()


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run what `request` asks for; return what to answer."""
    if "read" in request:
        file = Path(request["read"])
        return {"text": file.read_text(encoding="utf-8") if file.is_file() else ""}
    limits = Limits(int(request["memory_bytes"]), float(request["time_s"]))
    if _has_network():
        return {"error": "the container has a network, and the kernel refuses to take it away"}
    try:
        status, usage = run_confined(
            request["command"], limits, Path(request["work"]), _end_with_input
        )
    except OSError as error:
        return {"error": f"{request['command'][0]}: cannot start: {error.strerror}"}
    return {"status": status} | usage.as_dict()


def main() -> None:
    """Serve requests until the input ends."""
    with os.fdopen(os.dup(0), "rb", buffering=0) as requests:
        for line in iter(requests.readline, b""):
            print(json.dumps(answer(json.loads(line))), flush=True)
            _reap()
    sys.exit(0)
