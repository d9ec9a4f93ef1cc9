"""The release: stamped with what decides results, refused when stale, rendered from itself."""

import json
import shutil
import warnings
from pathlib import Path

import pytest
from replication import release
from replication.config import load_config
from replication.errors import InputError
from replication.files import sha256_of

from tests.unit.report_project import example

ROOT = Path(__file__).parents[2]


def test_the_committed_release_says_whether_it_is_current():
    """Never red for an older release: what changed is said in the summary of the test run."""
    said = release.state(ROOT)
    assert said.startswith("release: ")
    if "are here" not in said:
        warnings.warn(said, stacklevel=1)


@pytest.fixture
def made(project, monkeypatch):
    """A project with results whose provenance fits its files."""
    project.add(example(project.world))
    project.merge("synthetic")
    shutil.copytree(ROOT / "configs" / "tiers", project.root / "configs" / "tiers")
    shutil.copy(ROOT / "configs" / "config.yaml", project.root / "configs")
    published = project.root / "data" / "published" / "synthetic.csv"
    published.parent.mkdir(parents=True, exist_ok=True)
    if not published.is_file():
        shutil.copy(project.world.folder / "published.csv", published)
    engine = project.root / "workflow" / "engines" / "ns3" / "main.cpp"
    engine.parent.mkdir(parents=True)
    engine.write_text("int main() {}")
    provenance = json.loads((project.data / "provenance.json").read_text())
    provenance["studies"] = {
        "synthetic": {
            "study_sha256": sha256_of(project.root / "configs" / "studies" / "synthetic.yaml"),
            "published_sha256": sha256_of(published),
        }
    }
    fingerprint = load_config(project.root / "configs" / "config.yaml").engine("ns3").fingerprint
    provenance["engines"]["ns3"]["fingerprint"] = fingerprint(project.root)
    (project.data / "provenance.json").write_text(json.dumps(provenance))
    return project


def make(project) -> Path:
    folder = project.root / release.FOLDER
    release.make_release(project.root, project.data, folder)
    return folder


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("configs/studies/synthetic.yaml", "study synthetic"),
        ("data/published/synthetic.csv", "published numbers of synthetic"),
        ("workflow/engines/ns3/main.cpp", "engine ns3"),
    ],
)
def test_a_release_says_what_has_changed_since(made, path, word):
    assert "there is none" in release.state(made.root)
    make(made)
    assert "made from the code and data that are here" in release.state(made.root)
    with (made.root / path).open("a") as file:
        file.write("\n")
    said = release.state(made.root)
    assert f"made from other versions of: {word}; `make release`" in said


def test_what_decides_no_result_changes_no_hash(made):
    before = release.hashes(made.root)
    (made.root / "workflow" / "engines" / "ns3" / "README.md").write_text("words")
    (made.root / "notes.txt").write_text("words")
    assert release.hashes(made.root) == before


def test_results_of_other_files_are_refused(made):
    path = made.data / "provenance.json"
    provenance = json.loads(path.read_text())
    provenance["engines"]["ns3"]["fingerprint"] = "of other sources"
    path.write_text(json.dumps(provenance))
    with pytest.raises(InputError, match="another version of engine ns3; run `make report` first"):
        make(made)
    assert not (made.root / release.FOLDER).exists()


def test_a_release_that_is_too_large_is_refused(made, monkeypatch):
    monkeypatch.setattr(release, "LIMIT_BYTES", 1000)
    with pytest.raises(InputError, match="more than 0"):
        make(made)


def test_without_its_results_a_release_is_not_rendered_again(made):
    make(made)
    (made.root / release.RESULTS).unlink()
    with pytest.raises(InputError, match="no such file"), release.released_results(made.root):
        pass


def test_a_release_is_rendered_again_from_itself(made, tmp_path):
    folder = make(made)
    with release.released_results(made.root) as data:
        from replication.report import render

        render(made.root, data, tmp_path / "none", tmp_path / "html")
    for page in [*(tmp_path / "html").rglob("*.html"), *(tmp_path / "html").rglob("*.csv")]:
        name = page.relative_to(tmp_path / "html")
        assert page.read_bytes() == (folder / name).read_bytes(), name
    (made.root / release.RESULTS).write_bytes(b"no archive")
    with (
        pytest.raises(InputError, match="restore it with git"),
        release.released_results(made.root),
    ):
        pass


def test_a_release_has_no_notebooks_and_no_broken_links(made):
    folder = make(made)
    assert not (folder / "notebooks").exists()
    assert "notebooks/" not in (folder / "synthetic.html").read_text()
