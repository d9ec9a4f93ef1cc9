"""The committed outputs are compared with fresh ones, strictly: changed data must be noticed.

That unchanged data pass is what nbval over the notebooks themselves says.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from replication.report.released import released_results
from replication.study.files import write_text
from replication.verdicts.verdict_table import read_verdicts, write_verdicts

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path):
    """One notebook, its data and the studies, as a project of their own."""
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    shutil.copytree(released_results(ROOT), tmp_path / "data" / "changed")
    text = (ROOT / "notebooks" / "homogeneous_dumbbell.ipynb").read_text(encoding="utf-8")
    write_text(
        tmp_path / "notebooks" / "homogeneous_dumbbell.ipynb",
        text.replace("data/release", "data/changed"),
    )
    return tmp_path


def compare(project):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=."]
    command += ["--nbval", "--nbval-current-env", "notebooks/homogeneous_dumbbell.ipynb"]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300)


def test_a_changed_number_fails(project):
    study = project / "data" / "changed" / "evaluation" / "nishitha"
    rows = read_verdicts(study, "cells")
    known = [row for row in rows if row["published"] == 0.997667]
    assert known
    for row in known:
        row["published"] = 0.123456
    write_verdicts(study, rows, read_verdicts(study, "claims"))
    result = compare(project)
    assert result.returncode == 1
    assert "0.123" in result.stdout
