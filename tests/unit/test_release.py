"""The release is verified before it is rendered, and its verdicts follow from its results."""

import hashlib
import io
import json
import re
import shutil
import zipfile
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from replication.base.errors import InputError
from replication.base.files import write_text
from replication.cli.main import app, find_scenario
from replication.design.config import load_study
from replication.report import release, render
from replication.report.crate import write_crate
from replication.report.manifest import (
    ARCHIVE,
    MANIFEST,
    PAGES,
    RELEASED,
    check_release,
    manifest,
    refresh_manifest,
)
from replication.report.release import released_results
from replication.report.render import _write_notebooks, make_release
from rocrate.rocrate import ROCrate
from typer.testing import CliRunner

from tests.unit.conftest import ROOT, World, missing_from
from tests.unit.report_project import Project, example, soup

DATA = "data/reproduced"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A project with results in the folder of a user's results."""
    project = Project(World(tmp_path_factory.mktemp("world")), tmp_path_factory.mktemp("project"))
    project.add(example(project.world))
    project.merge("synthetic")
    data = project.root / DATA
    shutil.copytree(project.data, data)
    provenance = json.loads((data / "provenance.json").read_text()) | {"studies": {"synthetic": {}}}
    write_text(data / "provenance.json", json.dumps(provenance))
    for name in ("CITATION.cff", "Snakefile"):
        shutil.copyfile(ROOT / name, project.root / name)
    return project.root


@pytest.fixture(scope="module")
def with_release(original, tmp_path_factory):
    """The same with a release made from it."""
    root = shutil.copytree(original, tmp_path_factory.mktemp("release") / "project")
    make_release(root, root / DATA)
    return root


@pytest.fixture
def made(with_release, tmp_path):
    """A copy for one test."""
    return shutil.copytree(with_release, tmp_path / "project")


def replicate(root, monkeypatch, *words):
    """Run a command in the project's folder."""
    monkeypatch.chdir(root)
    return CliRunner().invoke(app, list(words))


def replaced_by_a_link(path):
    """The content is the same, so that nothing but the link differs."""
    path.rename(path.parents[3] / "elsewhere")
    path.symlink_to(path.parents[3] / "elsewhere")


#: A change to a file or folder of a release, and its message.
ALTERED = {
    "data/release/cells.csv": (lambda path: write_text(path, "study\n"), "changed"),
    "data/release/results/synthetic/features.parquet": (Path.unlink, "missing"),
    "data/release/more.csv": (Path.touch, "added"),
    "data/release/empty": (Path.mkdir, "an empty folder"),
    "data/release/claims.csv": (lambda path: path.chmod(0), "unreadable"),
    "data/release/design/away.csv": (lambda path: path.symlink_to("none"), "a link"),
    "reports/release/charts": (replaced_by_a_link, "a link"),
    "reports/release/changes.html": (Path.unlink, "missing"),
    "reports/release/notebooks/start_here.html": (Path.touch, "added"),
}


@pytest.mark.parametrize("name", ALTERED)
def test_an_altered_release_is_refused(made, name):
    alter, what = ALTERED[name]
    (made / name).parent.mkdir(exist_ok=True)
    alter(made / name)
    named = rf"{name} \({what}\).*git checkout -- data/release"
    with pytest.raises(InputError, match=named):
        check_release(made)
    # The results do not depend on the pages.
    is_result = name.startswith("data/")
    with pytest.raises(InputError, match=named) if is_result else nullcontext():
        released_results(made)


def test_only_the_address_in_archive_yaml_may_change(made):
    path = made / ARCHIVE
    text = path.read_text()
    write_text(path, f"{text}address: https://example.org/a.zip\n")
    assert not missing_from(check_release(made), "archive.yaml", "address")
    write_text(path, re.sub("sha256: .", "sha256: x", text) + "address: file:///a.zip\n")
    for use in (check_release, release.fetch_results):
        with pytest.raises(InputError, match=r"data/release/archive.yaml \(changed\)"):
            use(made)


def test_a_release_is_a_crate_of_a_workflow_run(made):
    released = made / RELEASED
    crate, written = ROCrate(released), json.loads((released / "provenance.json").read_text())
    names = {path.relative_to(released).as_posix() for path in released.rglob("*")}
    names = {name for name in names if (released / name).is_file()}
    assert {entity.id for entity in crate.data_entities} == names - {"ro-crate-metadata.json"}
    profiles = {entity.id for entity in crate.root_dataset["conformsTo"]}
    assert "https://w3id.org/ro/wfrun/workflow/0.6" in profiles
    (run,) = crate.root_dataset["mentions"]
    assert run["instrument"].id == crate.mainEntity.id == "Snakefile"
    assert run["endTime"] == crate.root_dataset["datePublished"] == written["written"]
    results, inputs = ({entity.id for entity in run[key]} for key in ("result", "object"))
    assert {"cells.csv", "claims.csv", "provenance.json"} <= results
    assert inputs == {"#tier", "configs/studies/synthetic/study.yaml"}


def test_the_crate_of_a_release_made_again_has_the_same_bytes(made):
    path = made / RELEASED / "ro-crate-metadata.json"
    before = path.read_bytes()
    path.unlink()
    write_crate(made, made / RELEASED)
    assert path.read_bytes() == before


def test_refreshing_the_manifest_accepts_changed_notebooks_only(made):
    for text in ("first", "second"):
        write_text(made / "reports/release/notebooks/start_here.html", text)
        refresh_manifest(made)
        check_release(made)
    write_text(made / "data/release/cells.csv", "study\n")
    refresh_manifest(made)
    with pytest.raises(InputError, match=r": data/release/cells.csv \(changed\);"):
        check_release(made)


@pytest.mark.parametrize("folder", [RELEASED, PAGES], ids=str)
def test_a_release_that_is_too_large_is_refused_and_the_old_one_stays(made, monkeypatch, folder):
    monkeypatch.setitem(render._LIMITS, folder, 1_000)
    with pytest.raises(InputError, match=rf"{folder}: .*\d\.\d MB.*0\.001"):
        make_release(made, made / DATA)
    check_release(made)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("data/release/cells.csv", "not reproduced", "reproduced"),
        ("reports/release/index.html", "<h1>", "<h1>Yes. "),
    ],
)
def test_a_full_check_recomputes_verdicts_and_pages(made, monkeypatch, name, old, new):
    """The manifest was changed together with them, so the files alone are in order."""
    done = replicate(made, monkeypatch, "release", "--check", "--full")
    assert done.exit_code == 0
    path = made / name
    write_text(path, path.read_text().replace(old, new))
    write_text(made / MANIFEST, manifest(made))
    assert replicate(made, monkeypatch, "release", "--check").exit_code == 0
    done = replicate(made, monkeypatch, "release", "--check", "--full")
    assert isinstance(done.exception, InputError)
    assert Path(name).name in str(done.exception)


def test_altered_restored_results_are_restored_again(made):
    cells = released_results(made) / "cells.csv"
    kept = cells.read_bytes()
    write_text(cells, "study\n")
    write_text(cells.with_name("more.csv"), "")
    assert (released_results(made) / "cells.csv").read_bytes() == kept
    assert not cells.with_name("more.csv").exists()


def test_a_command_of_a_released_page_finds_its_scenario(made, monkeypatch):
    page = next((made / "reports/release/runs").glob("*.html"))
    command = soup(page).select_one("code.command").text
    scenario = re.fullmatch(r"replicate run (\w+) --engine \w+", command)[1]
    shutil.rmtree(made / DATA)
    monkeypatch.chdir(made)
    assert find_scenario(Path(DATA), scenario).id == scenario
    with pytest.raises(InputError, match="'unknown'"):
        find_scenario(Path(DATA), "unknown")


def test_the_release_can_be_read_after_a_study_has_changed(made):
    kept = contents(released_results(made))
    path = made / "configs/studies/synthetic/study.yaml"
    document = json.loads(path.read_text())
    document["parameters"]["duration_s"]["value"] += 1
    write_text(path, json.dumps(document))
    shutil.rmtree(made / release.CACHE)
    assert contents(released_results(made)) == kept


def test_a_release_whose_scenarios_the_code_no_longer_designs_is_refused(made, monkeypatch):
    shutil.rmtree(made / release.CACHE, ignore_errors=True)
    monkeypatch.setattr(release, "design_study", lambda *given, **options: [])
    with pytest.raises(InputError, match=r"synthetic .*27 of its 27"):
        released_results(made)


def test_series_are_fetched_from_an_address_and_checked(made):
    (packed,) = (made / "data").glob("series-*.zip")
    kept = packed.rename(made / "elsewhere.zip")
    with pytest.raises(InputError, match=r"archive.yaml: .*address"):
        release.fetch_results(made)
    release.fetch_results(made, kept.as_uri())
    fetched = pd.read_parquet(made / "data/series/synthetic")
    original = pd.read_parquet(made / DATA / "batches/synthetic-batch.series.parquet")
    pd.testing.assert_frame_equal(fetched, original)
    path = made / ARCHIVE
    write_text(path, path.read_text() + f"address: {kept.as_uri()}\n")
    packed.unlink()
    assert "data/series" in release.fetch_results(made)
    packed.unlink()
    kept.write_bytes(b"another")
    with pytest.raises(InputError, match="has changed"):
        release.fetch_results(made)
    assert not packed.exists()


def write_archive(root, content, **changes):
    """Put `content` at an address and describe it in archive.yaml, with some fields changed."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "elsewhere.zip").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    fields = {
        "file": f"series-{digest[:12]}.zip",
        "sha256": digest,
        "bytes": len(content),
        "address": (root / "elsewhere.zip").as_uri(),
    }
    write_text(root / release.ARCHIVE, json.dumps(fields | changes))
    write_text(root / MANIFEST, manifest(root))


def zipped(name, content=b"PAR1", compression=zipfile.ZIP_STORED):
    """Return a ZIP file of one file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), content, compression)
    return packed.getvalue()


def contents(root):
    return {path.relative_to(root): path.read_bytes() for path in paths_below(root)}


def paths_below(root):
    return sorted(path for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "file",
    [
        "../../outside.zip",
        "/tmp/series-0123456789ab.zip",
        "../.git/hooks/pre-commit",
        "series/../series-0123456789ab.zip",
        "series-0123456789ab.zip\n",
        "results.zip",
    ],
)
def test_an_archive_outside_the_folder_of_archives_is_refused(tmp_path, file):
    root = tmp_path / "a" / "b"
    write_archive(root, zipped("saxena/a.parquet"), file=file)
    before = paths_below(tmp_path)
    with pytest.raises(InputError, match=r"archive\.yaml.*: file: ") as caught:
        release.fetch_results(root)
    assert len(str(caught.value).splitlines()) == 1
    assert paths_below(tmp_path) == before


SERIES = zipped("saxena/a.parquet")


@pytest.mark.parametrize(
    ("content", "changes", "fact"),
    [
        pytest.param(SERIES, {"bytes": 10}, " 10 bytes", id="larger"),
        pytest.param(SERIES, {"bytes": 10**9}, " 1000000000 bytes", id="smaller"),
        pytest.param(b"<html>not found</html>", {}, "zip file", id="page"),
        pytest.param(SERIES[:60], {}, "zip file", id="half"),
        pytest.param(SERIES.replace(b"PAR1", b"PAR2"), {}, "Bad CRC", id="damaged"),
        pytest.param(zipped("../a.parquet"), {}, r"'\.\./a\.parquet'", id="folder-above"),
        pytest.param(zipped("/tmp/a.parquet"), {}, "'/tmp/a.parquet'", id="absolute"),
        pytest.param(zipped("saxena/../../a.parquet"), {}, "no <study>/<name>", id="path"),
        pytest.param(zipped("saxena/a.py"), {}, "no <study>/<name>", id="program"),
        pytest.param(
            zipped("saxena/a.parquet", bytes(10**6), zipfile.ZIP_DEFLATED),
            {},
            "1000000 unpacked",
            id="bomb",
        ),
    ],
)
def test_a_file_that_is_no_archive_of_series_is_refused(tmp_path, content, changes, fact):
    root = tmp_path / "a" / "b"
    write_archive(root, content, **changes)
    with pytest.raises(InputError, match=fact) as caught:
        release.fetch_results(root)
    assert len(str(caught.value).splitlines()) == 1
    assert not [path for path in paths_below(tmp_path) if path.suffix in (".parquet", ".py")]
    assert not (root / "data/series").exists()


def test_a_kept_archive_of_a_different_size_is_not_unpacked(tmp_path):
    content = zipped("saxena/a.parquet")
    write_archive(tmp_path, content)
    release.fetch_results(tmp_path)
    assert (tmp_path / "data/series/saxena/a.parquet").read_bytes() == b"PAR1"
    write_archive(tmp_path, content, bytes=10)
    with pytest.raises(InputError, match=" 10 bytes"):
        release.fetch_results(tmp_path)


def test_a_release_is_rendered_again_from_itself(made, tmp_path):
    folder, link = made / PAGES, "../../data/release"
    render.render(made, released_results(made), tmp_path / "none", tmp_path / "html", link)
    for path in [*(tmp_path / "html").rglob("*.html"), *(tmp_path / "html").rglob("*.csv")]:
        name = path.relative_to(tmp_path / "html")
        assert path.read_bytes() == (folder / name).read_bytes(), name


def test_a_release_has_no_notebooks_and_no_broken_links(made):
    folder = made / PAGES
    assert not (folder / "notebooks").exists() and not (folder / "data").exists()
    assert "notebooks/" not in (folder / "synthetic.html").read_text()
    for path in folder.rglob("*.html"):
        for link in soup(path).select("a[href*='data/release/']"):
            assert (path.parent / link["href"]).is_file(), (path, link["href"])


def test_the_released_report_links_the_lectures(made, tmp_path):
    write_text(made / "notebooks/start_here.ipynb", "{}")
    render.render(made, released_results(made), tmp_path / "none", tmp_path / "html", "../data")
    (link,) = soup(tmp_path / "html/method.html").select("a[href^='notebooks/']")
    assert link["href"] == "notebooks/start_here.html"
    (course,) = soup(tmp_path / "html/index.html").select("a[href='method.html#lectures']")
    assert "lectures" in course.get_text()
    source, kapadia = SimpleNamespace(is_release=True), load_study(ROOT, "kapadia")
    linked = _write_notebooks(source, kapadia, tmp_path, tmp_path, with_sensitivity=True)
    assert [name for name, _ in linked] == ["cwnd traces", "trace comparison"]


def test_every_page_names_its_results_and_a_release_is_rendered_to_another_folder(
    made, monkeypatch
):
    assert replicate(made, monkeypatch, "render").exit_code == 0
    pages = made / "reports/html"
    shutil.rmtree(made / DATA)
    kept = (pages / "index.html").read_bytes()
    assert replicate(made, monkeypatch, "render").exit_code == 0
    assert (pages / "index.html").read_bytes() == kept
    for folder in (pages, made / "reports/html-release"):
        assert len(list(folder.rglob("*.html"))) > 9
        for path in folder.rglob("*.html"):
            footer = " ".join(soup(path).footer.text.split())
            assert not missing_from(footer, "2026-01-02 03:04 UTC", "tier paper", "ns3 3.44")
