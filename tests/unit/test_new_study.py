"""`replicate new-study`: a valid study to fill in, and nothing half-written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from replication.cli.main import app
from replication.design.config import load_study
from replication.design.new_study import new_study
from replication.study.errors import InputError
from typer.testing import CliRunner

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path):
    """A project with the guide and one study."""
    for name in ("configs/README.md", "configs/studies/saxena/study.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "data" / "published").mkdir(parents=True)
    return tmp_path


def test_what_is_written_is_a_valid_study_under_its_id_title_and_type(project):
    title = 'Reno: "fast" or not? # a question'
    made = new_study(project, "smith_2004", title, "queuing")
    study = load_study(project, "smith_2004")
    assert (study.id, study.title, study.experiments[0].type) == ("smith_2004", title, "queuing")
    document, numbers = (path.read_text(encoding="utf-8") for path in made)
    assert "make report TIER=quick STUDIES=smith_2004" in document
    assert {line.split(",")[0] for line in numbers.splitlines()[1:]} == {study.tables[0].id}


@pytest.mark.parametrize(
    ("study", "title", "kind", "message"),
    [
        ("saxena", "T", "queuing", "exists"),
        ("../x", "T", "queuing", "small letters"),
        ("x", "two\nlines", "queuing", "one line"),
        ("x", "T", "quening", "unknown; there are cbr_sweep"),
    ],
)
def test_a_bad_answer_is_named_and_nothing_is_written(project, study, title, kind, message):
    before = sorted(project.rglob("*"))
    with pytest.raises(InputError, match=message):
        new_study(project, study, title, kind)
    assert sorted(project.rglob("*")) == before


def test_the_type_is_asked_for_with_what_there_is_to_choose(project, monkeypatch):
    monkeypatch.chdir(project)
    command = ["new-study", "--id", "asked", "--title", "T"]
    done = CliRunner().invoke(app, command, input="queuing\n")
    assert done.exit_code == 0
    assert "cbr_sweep" in done.output
    assert (project / "configs/studies/asked/study.yaml").is_file()
