"""The release: verified before it is rendered again, and its verdicts follow from its results."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from replication.cli.main import app
from replication.report import release
from replication.report.archive import pack, unpack
from replication.report.notebooks.notebook import write_notebook
from replication.report.render import render
from replication.study.errors import InputError
from replication.study.files import digest_of, sha256_of, write_text
from typer.testing import CliRunner

from tests.unit.conftest import World
from tests.unit.report_project import Project, example, soup

ROOT = Path(__file__).parents[2]


def test_the_committed_release_is_what_was_made():
    assert {"cells.csv", "claims.csv", "audit.csv"} <= release.verify_release(ROOT).keys()


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A project with results where one's own stand."""
    project = Project(World(tmp_path_factory.mktemp("world")), tmp_path_factory.mktemp("project"))
    project.add(example(project.world))
    project.merge("synthetic")
    data = project.root / "data" / "reproduced"
    for path in {path for pattern in release.RENDERED for path in project.data.glob(pattern)}:
        (data / path.relative_to(project.data)).parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            shutil.copy(path, data / path.relative_to(project.data))
    (data / "published.csv").unlink()
    provenance = json.loads((data / "provenance.json").read_text()) | {"studies": {"synthetic": {}}}
    write_text(data / "provenance.json", json.dumps(provenance))
    return project.root


@pytest.fixture(scope="module")
def with_release(original, tmp_path_factory):
    """The same with a release made of it."""
    root = shutil.copytree(original, tmp_path_factory.mktemp("release") / "project")
    release.make_release(root, root / "data" / "reproduced")
    return root


@dataclass(frozen=True)
class Copy:
    """A copy of a project, for one test."""

    root: Path

    @property
    def data(self) -> Path:
        return self.root / "data" / "reproduced"

    def replicate(self, monkeypatch, *words):
        """Run a command in the project's folder."""
        monkeypatch.chdir(self.root)
        return CliRunner().invoke(app, list(words))


@pytest.fixture
def unreleased(original, tmp_path):
    return Copy(shutil.copytree(original, tmp_path / "project"))


@pytest.fixture
def made(with_release, tmp_path):
    return Copy(shutil.copytree(with_release, tmp_path / "project"))


def altered_archive(made):
    """Turn a verdict in the archive, and nothing else."""
    path = made.root / release.RESULTS
    path.write_bytes(pack(turned(unpack(path.read_bytes()))))


def turned(files):
    """Return tables in which what was not reproduced is."""
    return {
        name: content.replace(b",not reproduced,", b",reproduced,")
        if name.endswith(".csv")
        else content
        for name, content in files.items()
    }


def page(made, name):
    return made.root / release.FOLDER / name


ALTERATIONS = {
    "a verdict in the archive": (altered_archive, "data/release/results.tar.xz"),
    "a page": (
        lambda made: page(made, "synthetic.html").write_text("<p>reproduced</p>"),
        "reports/release/synthetic.html",
    ),
    "a download": (
        lambda made: page(made, "data/cells.csv").write_text("study"),
        "reports/release/data/cells.csv",
    ),
    "a page that is gone": (
        lambda made: page(made, "changes.html").unlink(),
        "reports/release/changes.html",
    ),
    "a page more": (
        lambda made: page(made, "other.html").write_text("x"),
        "reports/release/other.html",
    ),
}


@pytest.mark.parametrize("what", ALTERATIONS)
def test_an_altered_release_is_said_and_not_rendered(made, what):
    alter, name = ALTERATIONS[what]
    alter(made)
    said = f"altered since it was made: {name}.*git checkout -- data/release reports/release"
    with pytest.raises(InputError, match=said):
        release.check_release(made.root)
    with pytest.raises(InputError, match=said), release.released_results(made.root):
        pass


def test_verdicts_that_do_not_follow_from_the_results_are_said(made, monkeypatch):
    """The manifest was altered together with them."""
    altered_archive(made)
    path = page(made, release.MANIFEST)
    archive = digest_of((made.root / release.RESULTS).read_bytes())
    path.write_text(json.dumps(json.loads(path.read_text()) | {"archive": archive}))
    release.verify_release(made.root)
    done = made.replicate(monkeypatch, "release", "--check")
    assert isinstance(done.exception, InputError)
    assert "judging its results again gives another" in str(done.exception)
    assert "cells.csv" in str(done.exception)


@pytest.mark.parametrize("text", ["", "[]", '{"archive": "acb697e7ca86537d"}'])
def test_a_damaged_manifest_is_said(made, text):
    page(made, release.MANIFEST).write_text(text)
    with pytest.raises(InputError, match=r"stamp.json: is damaged.*make release"):
        release.check_release(made.root)


def test_a_hash_does_not_hang_on_the_order_of_files_of_one_name(tmp_path):
    files = [tmp_path / folder / "x.py" for folder in "ab"]
    for number, path in enumerate(files):
        path.parent.mkdir()
        path.write_text(f"{number}")
    assert sha256_of(*files) == sha256_of(*reversed(files))
    before = sha256_of(*files)
    files[1].write_text("2")
    assert sha256_of(*files) != before


def test_a_release_that_is_too_large_is_refused_and_changes_nothing(unreleased, monkeypatch):
    monkeypatch.setattr(release, "LIMIT_BYTES", 1000)
    with pytest.raises(InputError, match="more than 0"):
        release.make_release(unreleased.root, unreleased.data)
    assert not (unreleased.root / release.FOLDER).exists()
    assert not (unreleased.root / release.RESULTS).exists()


def test_without_a_release_there_is_nothing_to_check_or_render(unreleased, monkeypatch):
    shutil.rmtree(unreleased.data)
    for words in (("release", "--check"), ("render",)):
        done = unreleased.replicate(monkeypatch, *words)
        assert "there is no release; `make release` makes one" in str(done.exception)


@pytest.mark.parametrize("content", [None, b"no archive"])
def test_without_its_results_a_release_is_not_rendered_again(made, content):
    path = made.root / release.RESULTS
    path.unlink() if content is None else path.write_bytes(content)
    with (
        pytest.raises(InputError, match=r"results\.tar\.xz.*restore it"),
        release.released_results(made.root),
    ):
        pass


def test_a_release_is_rendered_again_from_itself(made, tmp_path):
    folder = made.root / release.FOLDER
    with release.released_results(made.root) as data:
        render(made.root, data, tmp_path / "none", tmp_path / "html")
    for found in [*(tmp_path / "html").rglob("*.html"), *(tmp_path / "html").rglob("*.csv")]:
        name = found.relative_to(tmp_path / "html")
        assert found.read_bytes() == (folder / name).read_bytes(), name


def test_a_release_has_no_notebooks_and_no_broken_links(made):
    folder = made.root / release.FOLDER
    assert not (folder / "notebooks").exists()
    assert "notebooks/" not in (folder / "synthetic.html").read_text()


def test_the_release_never_stands_where_ones_own_report_belongs(made, monkeypatch):
    shutil.rmtree(made.data)
    done = made.replicate(monkeypatch, "render")
    assert done.exit_code == 0, done.output
    assert "reports/html-release/index.html: the released results" in done.output
    assert not (made.root / "reports" / "html").exists()
    for found in (made.root / "reports" / "html-release").rglob("*.html"):
        assert "Results of 2026-01-02 03:04 UTC: tier paper" in soup(found).footer.text


def test_every_page_says_what_its_results_are_of(made, monkeypatch):
    kind = "any_study"
    notebook = made.root / "reports" / "notebooks" / f"synthetic.{kind}.ipynb"
    content = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Example")])
    write_notebook(notebook, content)
    done = made.replicate(monkeypatch, "render")
    assert done.exit_code == 0, done.exception
    pages = list((made.root / "reports" / "html").rglob("*.html"))
    assert {"index", "synthetic", notebook.stem} < {path.stem for path in pages}
    for found in pages:
        said = " ".join(soup(found).footer.text.split())
        assert said.startswith(
            "Results of 2026-01-02 03:04 UTC: tier paper; studies synthetic; engines ns3 3.44."
        )


def test_other_results_are_not_rendered_over_ones_own(made, monkeypatch):
    done = made.replicate(monkeypatch, "render", "--data", str(made.root / "data"))
    assert "--output: is needed" in str(done.exception)
