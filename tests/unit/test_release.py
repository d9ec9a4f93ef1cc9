"""The release: of one run, stamped with its making, verified before it is believed."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from replication.cli.main import app
from replication.plan.config import load_config
from replication.plan.notebook_kind import made_from
from replication.plan.stamp import digests
from replication.report import release
from replication.report.archive import pack, unpack
from replication.report.notebooks.notebook import write_notebook
from replication.report.render import render
from replication.study.errors import InputError
from replication.study.files import digest_of, sha256_of
from replication.study.storage.seal import record_of, write_sealed
from typer.testing import CliRunner

from tests.unit.conftest import World
from tests.unit.report_project import Project, example, soup

ROOT = Path(__file__).parents[2]


def test_the_committed_release_is_what_was_made():
    stamp, tables = release.verify_release(ROOT)
    assert stamp.tier == "paper" and {"cells.csv", "claims.csv", "audit.csv"} <= tables.keys()


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A project with results where one's own stand, whose provenance fits its files."""
    project = Project(World(tmp_path_factory.mktemp("world")), tmp_path_factory.mktemp("project"))
    project.add(example(project.world))
    project.merge("synthetic")
    data = project.root / "data" / "reproduced"
    for path in {path for pattern in release.RENDERED for path in project.data.glob(pattern)}:
        (data / path.relative_to(project.data)).parent.mkdir(parents=True, exist_ok=True)
        for one in filter(Path.is_file, (path, record_of(path))):
            shutil.copy(one, data / one.relative_to(project.data))
    (data / "published.csv").unlink()
    shutil.copytree(ROOT / "configs" / "tiers", project.root / "configs" / "tiers")
    shutil.copy(ROOT / "configs" / "config.yaml", project.root / "configs")
    project.write("workflow/engines/ns3/main.cpp", "int main() {}")
    provenance = json.loads((data / "provenance.json").read_text())
    study = project.root / "configs" / "studies" / "synthetic.yaml"
    published = project.root / "data" / "published" / "synthetic.csv"
    provenance["studies"] = {
        "synthetic": {"study_sha256": sha256_of(study), "published_sha256": sha256_of(published)}
    }
    fingerprint = load_config(project.root / "configs" / "config.yaml").engine("ns3").fingerprint
    provenance["engines"]["ns3"]["fingerprint"] = fingerprint(project.root)
    tables = [path for path in data.rglob("*.*") if path.suffix in (".csv", ".parquet")]
    provenance["tables"] = digests(data, tables)
    write_sealed(data / "provenance.json", json.dumps(provenance))
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


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("configs/studies/synthetic.yaml", "study synthetic"),
        ("data/published/synthetic.csv", "published numbers of synthetic"),
        ("workflow/engines/ns3/main.cpp", "engine ns3"),
    ],
)
def test_a_release_says_what_has_changed_since(made, path, word):
    assert "made from the code and data that are here" in release.check_release(made.root)
    with (made.root / path).open("a") as file:
        file.write("\n")
    said = f"made from another version of {word}; `make release` renews it"
    with pytest.raises(InputError, match=said):
        release.check_release(made.root)
    with pytest.raises(InputError, match=said), release.released_results(made.root):
        pass


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
        lambda made: page(made, "summary.html").unlink(),
        "reports/release/summary.html",
    ),
    "a page more": (
        lambda made: page(made, "other.html").write_text("x"),
        "reports/release/other.html",
    ),
    "the tier in the stamp": (
        lambda made: stamp(made, tier="deep"),
        "reports/release/stamp.json",
    ),
    "a table's hash in the stamp": (
        lambda made: stamp(made, tables={}),
        "data/release/results.tar.xz: agreement.csv",
    ),
}


def stamp(made, **changes):
    path = page(made, release.STAMP)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


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
    """The stamp, and the run's own record of its tables, were altered together with them."""
    path = made.root / release.RESULTS
    files = turned(unpack(path.read_bytes()))
    provenance = json.loads(files["provenance.json"])
    provenance["tables"] = {
        name: digest_of(files[name]) if name in files else digest
        for name, digest in provenance["tables"].items()
    }
    files["provenance.json"] = json.dumps(provenance).encode()
    path.write_bytes(pack(files))
    tables = {name: digest_of(content) for name, content in files.items()}
    stamp(made, archive=digest_of(path.read_bytes()), tables=tables)
    release.verify_release(made.root)
    done = made.replicate(monkeypatch, "release", "--check")
    assert isinstance(done.exception, InputError)
    assert "judging its results again gives another" in str(done.exception)
    assert "cells.csv" in str(done.exception)


def test_an_older_versions_stamp_is_said(made):
    old = {"tier": "paper", "results": {"cells.csv": "acb697e7ca86537d"}, "made_from": {}}
    page(made, release.STAMP).write_text(json.dumps(old))
    with pytest.raises(InputError, match=r"stamp.json: is damaged, or an older version's.*make re"):
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


def test_what_decides_no_result_changes_no_hash(made):
    before = release.hashes(made.root)
    (made.root / "workflow" / "engines" / "ns3" / "README.md").write_text("words")
    (made.root / "notes.txt").write_text("words")
    assert release.hashes(made.root) == before


def test_results_of_other_files_are_refused(unreleased):
    path = unreleased.data / "provenance.json"
    provenance = json.loads(path.read_text())
    provenance["engines"]["ns3"]["fingerprint"] = "of other sources"
    write_sealed(path, json.dumps(provenance))
    with pytest.raises(InputError, match="another version of engine ns3; run `make report`"):
        release.make_release(unreleased.root, unreleased.data)
    assert not (unreleased.root / release.FOLDER).exists()


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
        assert "Released results of 2026-01-02 03:04 UTC: tier paper" in soup(found).footer.text


def test_every_page_says_that_the_results_are_of_an_own_run(made, monkeypatch):
    kind = "any_study"
    notebook = made.root / "reports" / "notebooks" / f"synthetic.{kind}.ipynb"
    content = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Example")])
    write_notebook(notebook, content, made_from(made.root, made.data, "synthetic", kind))
    done = made.replicate(monkeypatch, "render")
    assert done.exit_code == 0, done.exception
    pages = list((made.root / "reports" / "html").rglob("*.html"))
    assert {"index", "synthetic", notebook.stem} < {path.stem for path in pages}
    for found in pages:
        said = " ".join(soup(found).footer.text.split())
        assert said.startswith(
            "Results of an own run of 2026-01-02 03:04 UTC: tier paper; studies synthetic; "
            "engines ns3 3.44."
        )


@pytest.mark.parametrize("name", ["cells.csv", "results/synthetic/flows.parquet"])
@pytest.mark.parametrize("how", ["gone", "of another run"])
def test_no_report_mixes_the_results_of_two_runs(made, monkeypatch, name, how):
    path = made.data / name
    path.unlink() if how == "gone" else path.write_bytes(path.read_bytes() + b"\n")
    done = made.replicate(monkeypatch, "render")
    assert f"{name}: gone, or not of the run that provenance.json tells of" in str(done.exception)
    assert not (made.root / "reports" / "html").exists()


def test_results_of_a_study_that_was_edited_since_are_not_rendered(made, monkeypatch):
    with (made.root / "configs" / "studies" / "synthetic.yaml").open("a") as file:
        file.write("\n")
    done = made.replicate(monkeypatch, "render")
    assert "another version of configs/studies/synthetic.yaml" in str(done.exception)


def test_other_results_are_not_rendered_over_ones_own(made, monkeypatch):
    done = made.replicate(monkeypatch, "render", "--data", str(made.root / "data"))
    assert "--output: is needed" in str(done.exception)
