"""Run a Python program and note which expressions of it are executed.

usage: python -I -S -B trace_program.py LOG FOLDER WORDS...

FOLDER has the modules of the program, WORDS are its arguments. A line of LOG is the place of an
expression that was executed: module, first and last line, first and last column. It is written at
once, so that processes that the program forks or becomes are noted too. Standard library only.
"""

import os
import runpy
import sys
from pathlib import Path
from types import FrameType
from typing import Any


def trace_into(log: str, folder: str) -> Any:
    """Return a trace function (`sys.settrace`) that notes what modules below `folder` execute."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    places: dict[int, list[tuple[int | None, int | None, int | None, int | None]]] = {}
    kept = []  # so that no two have the same id
    seen: set[tuple[int, int]] = set()

    def note(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            code, at = id(frame.f_code), frame.f_lasti // 2
            if (code, at) not in seen:
                seen.add((code, at))
                words = (Path(frame.f_code.co_filename).name, *places[code][at])
                os.write(descriptor, (" ".join(map(str, words)) + "\n").encode())
        return note

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(folder + "/"):
            return None
        if id(code) not in places:
            places[id(code)] = list(code.co_positions())
            kept.append(code)
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return note

    return enter


if __name__ == "__main__":
    log, folder, *words = sys.argv[1:]
    sys.argv = [folder, *words]
    sys.settrace(trace_into(log, folder))
    runpy.run_path(folder, run_name="__main__")
