"""In CI everything that a test needs is there: one that is skipped fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("ci", "code"), [("1", 1), ("", 0)])
def test_a_skipped_test_fails_in_ci_alone(ci, code, tmp_path):
    path = tmp_path / "test_tool.py"
    path.write_text('import pytest\n\n\ndef test_it():\n    pytest.skip("no such tool")\n')
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, f"--rootdir={tmp_path}", path],
        cwd=tmp_path,
        env=os.environ | {"CI": ci, "PYTHONPATH": f"{ROOT}:{ROOT / 'workflow'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout
    assert ("where everything must run: Skipped: no such tool" in done.stdout) == bool(ci)
