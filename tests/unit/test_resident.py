"""Programs in Python that the runner forks: what they see, and how each of their ends is told."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from replication.engines.lowering import PLAN_FILE
from replication.run.native import Native
from replication.run.process import Limits
from replication.run.resident import resident
from replication.study.errors import RunError

LIMITS = Limits(memory_bytes=2**30, time_s=30.0)
HEAD = "from __future__ import annotations\nimport json, os, resource, sys, time\n"
Made = Callable[[str], Path]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Return a function that makes a program, whose script would fail, of main's lines."""

    def make(lines: str) -> Path:
        program = tmp_path / "engine" / "replicate-it"
        (program.parent / "program").mkdir(parents=True)
        body = "".join(f"    {line}\n" for line in lines.splitlines())
        text = f"{HEAD}def main(words: list[str]) -> int:\n{body}"
        (program.parent / "program" / "command.py").write_text(text, encoding="utf-8")
        program.write_text("#!/bin/sh\necho executed >&2\nexit 9\n", encoding="utf-8")
        program.chmod(0o755)
        return program

    return make


def runs(program: Path, work: Path, times: int = 1, limits: Limits = LIMITS) -> list[Any]:
    """Run a program some times by one runner; return what each used."""
    native = Native(program)
    try:
        work.mkdir(exist_ok=True)
        return [native.run(work, limits, lambda: None) for _ in range(times)]
    finally:
        native.close()


def test_a_fork_sees_what_a_started_program_would(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "of the caller")
    program = made(
        "print('lost')\n"
        "told = {'words': words, 'folder': os.getcwd(), 'environment': dict(os.environ),\n"
        "        'read': sys.stdin.read(), 'open': sorted(map(int, os.listdir('/proc/self/fd'))),\n"
        "        'memory': resource.getrlimit(resource.RLIMIT_AS)[0],\n"
        "        'core': resource.getrlimit(resource.RLIMIT_CORE)[0],\n"
        "        'privileges': open('/proc/self/status').read().count('NoNewPrivs:\\t1')}\n"
        "open('told', 'w').write(json.dumps(told))\n"
        "return 0"
    )
    work = tmp_path / "work"
    used = runs(program, work)
    told = json.loads((work / "told").read_text(encoding="utf-8"))
    assert told["words"] == ["--plan", f"{work}/{PLAN_FILE}", "--output", str(work)]
    assert told["folder"] == str(work)
    assert told["environment"] == {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": str(work)}
    assert told["read"] == ""
    assert len(told["open"]) == 4  # that of the listing among them
    assert (told["memory"], told["core"], told["privileges"]) == (2**30, 0, 1)
    assert (work / "stderr.txt").read_text(encoding="utf-8") == ""
    assert used[0].cpu_s < 5 and used[0].peak_memory_bytes > 2**20


def test_one_run_leaves_nothing_to_the_next(made: Made, tmp_path: Path) -> None:
    program = made(
        "with open('seen', 'a') as file: file.write(f'{hasattr(sys, \"mark\")} {os.getpid()}\\n')\n"
        "sys.mark = True\n"
        "return 0"
    )
    runs(program, tmp_path / "work", times=3)
    seen = (tmp_path / "work" / "seen").read_text(encoding="utf-8").split()
    assert seen[::2] == ["False"] * 3
    assert len(set(seen[1::2])) == 3


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("print('it: no room', file=sys.stderr)\nreturn 2", "exit code 2: it: no room"),
        ("raise ValueError('a defect')", "exit code 1: ValueError: a defect"),
        ("bytearray(2**31)", "exit code 1: MemoryError; perhaps memory_limit_bytes"),
        ("os.kill(os.getpid(), 15)", "killed by signal 15"),
    ],
)
def test_each_bad_end_is_told(made: Made, tmp_path: Path, lines: str, said: str) -> None:
    with pytest.raises(RunError) as caught:
        runs(made(lines), tmp_path / "work")
    assert said in str(caught.value)


def test_a_run_without_end_is_ended(made: Made, tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(RunError, match="time_limit_s"):
        runs(made("time.sleep(60)"), tmp_path / "work", limits=Limits(2**30, 0.5))
    assert time.monotonic() - started < 20


def test_what_cannot_be_imported_is_executed(made: Made, tmp_path: Path) -> None:
    program = made("return 0")
    (program.parent / "program" / "command.py").write_text("import of nothing", encoding="utf-8")
    with pytest.raises(RunError, match="exit code 9: executed"):
        runs(program, tmp_path / "work")


def test_a_runner_takes_the_modules_of_one_program_alone(made: Made, tmp_path: Path) -> None:
    first = made("return 0")
    second = tmp_path / "other" / "replicate-other"
    (second.parent / "program").mkdir(parents=True)
    (second.parent / "program" / "command.py").write_text("main = None\n", encoding="utf-8")
    lines = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from replication.run.resident import resident\n"
        "print([resident(path) is None for path in sys.argv[2:]])\n"
    )
    package = str(Path(resident.__wrapped__.__code__.co_filename).parents[2])
    command = [sys.executable, "-ISBc", lines, package, str(first), str(second), str(first)]
    assert subprocess.check_output(command, text=True).strip() == "[False, True, False]"
