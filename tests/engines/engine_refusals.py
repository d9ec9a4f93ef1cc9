"""What the tests of bad input share: changing a scenario, and what a refusal must look like."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from engine_scenarios import Json


def changed(scenario: Json, place: list[str | int], value: Any) -> str:
    """Return a scenario's text with one value changed."""
    scenario = copy.deepcopy(scenario)
    target: Any = scenario
    for step in place[:-1]:
        target = target[step]
    target[place[-1]] = value
    return json.dumps(scenario)


def refused(
    invoke: Callable[..., CompletedProcess[str]], folder: Path, text: str, *words: str
) -> None:
    """Run a scenario's text and require a refusal in one line that has `words`."""
    path = folder / "scenario.json"
    path.write_text(text)
    done = invoke("--scenario", path, "--output", folder / "out")
    assert done.returncode == 2, done
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1
    assert "scenario.json" in lines[0]
    for word in words:
        assert word in lines[0]
    assert [entry.name for entry in folder.iterdir()] == ["scenario.json"]
