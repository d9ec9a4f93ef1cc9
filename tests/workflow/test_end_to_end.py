"""The whole workflow on real simulations: results, repeatability, reruns, interruption."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
import zipfile

import pandas as pd
import pytest
from replication.study.seal import remedy

from tests.workflow.project import Project, copy_project

STUDIES = ("dzivhani", "kapadia", "liang_shen", "nishitha", "saxena")
SIMULATE = {"simulate_batch", "simulate_heavy_batch"}
ENGINES = {"fetch_ns3_wheel", "build_ns3_program", "build_ns2_program", "build_linux_program"}
RESULTS = [f"data/reproduced/results/{s}/{t}.parquet" for s in STUDIES for t in ("flows", "series")]
VERDICTS = [f"data/reproduced/{name}.csv" for name in ("cells", "claims", "audit")]


@pytest.fixture
def changed(quick):
    """Edit files of the finished project for one test; put them back afterwards."""
    before = {}

    def edit(path, old, new):
        file = quick.root / path
        before.setdefault(file, (file.read_bytes(), file.stat()))
        quick.edit(path, old, new)

    yield edit
    for file, (content, stat) in before.items():
        file.write_bytes(content)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_it_ends_in_a_report_with_every_study(quick):
    for name in ("index", *STUDIES):
        assert (quick.root / "reports" / "html" / f"{name}.html").stat().st_size > 2000
    claims = pd.read_csv(quick.root / "data/reproduced/claims.csv")
    assert set(claims["study"]) == set(STUDIES)
    assert set(claims["engine"]) == {"ns3"}


def test_every_packet_is_accounted_for(quick):
    for study in STUDIES:
        flows = pd.read_parquet(quick.root / f"data/reproduced/results/{study}/flows.parquet")
        ends = flows["packets_received"] + flows["packets_dropped"] + flows["packets_in_flight"]
        assert (flows["packets_sent"] == ends).all()
        assert (flows["packets_in_flight"] >= 0).all()


def test_every_designed_run_has_its_results(quick):
    for study in STUDIES:
        design = pd.read_csv(quick.root / f"data/reproduced/design/{study}.csv")
        flows = pd.read_parquet(quick.root / f"data/reproduced/results/{study}/flows.parquet")
        assert set(design.loc[design["supported"], "scenario"]) == set(flows["scenario"])


def test_provenance_names_what_ran(quick):
    document = json.loads((quick.root / "data/reproduced/provenance.json").read_text())
    assert document["config"]["tier"] == "quick"
    assert document["engines"]["ns3"]["version"].startswith("3.44")
    assert 0 < document["simulate"]["efficiency"] <= 1
    assert document["simulate"]["scenarios"] > 100


def test_a_second_run_does_nothing(quick):
    assert quick.jobs("all", tier="quick") == {}


def test_every_file_behind_the_report_is_asked_for(quick):
    """A missing one that nothing asks for is made again only when its maker runs anyway."""
    plan = quick.snakemake("all", tier="quick", dry=True, options=("--forceall",)).stdout
    jobs = re.findall(r"^(?:local)?rule (\w+):\n((?:    .+\n)+)", plan, re.MULTILINE)
    files = {"input": set(), "output": set()}
    for rule, block in jobs:
        for kind, names in re.findall(r"^    (input|output): (.+)$", block, re.MULTILINE):
            if kind == ("input" if rule == "all" else "output") and rule not in ENGINES:
                files[kind] |= set(names.split(", "))
    assert files["output"] <= files["input"]
    assert len(files["output"]) > 20


def test_results_that_are_gone_are_made_again_under_a_finished_report(quick, tmp_path):
    gone = [quick.root / "data/reproduced" / n for n in ("cells.csv", "results", "evaluation")]
    gone.append(quick.root / "data/reproduced/batches")
    for path in gone:
        path.rename(tmp_path / path.name)
    try:
        jobs = quick.jobs("all", tier="quick")
    finally:
        for path in gone:
            (tmp_path / path.name).rename(path)
    wanted = {"collect_results", "evaluate_study", "merge_evaluations", "assemble_report"}
    assert wanted | {"simulate_batch"} <= jobs.keys()
    assert jobs["collect_results"] == jobs["evaluate_study"] == len(STUDIES)


def test_what_was_deleted_or_altered_in_the_report_is_restored(quick):
    html = quick.root / "reports" / "html"
    page, chart = html / "saxena.html", next(html.glob("charts/saxena~*"))
    before = page.read_bytes(), chart.read_bytes()
    page.write_bytes(before[0].replace(b"reproduced", b"not so", 1))
    shutil.rmtree(html / "charts")
    assert quick.jobs("all", tier="quick").keys() == {"all", "assemble_report"}
    quick.snakemake("all", tier="quick")
    assert (page.read_bytes(), chart.read_bytes()) == before
    assert quick.jobs("all", tier="quick") == {}


def test_a_part_of_the_report_that_was_altered_is_refused_and_made_anew(quick):
    part = quick.root / "data/reproduced/pages/index"
    page = part / "index.html"
    before = page.read_bytes()
    page.write_bytes(before.replace(b"reproduced", b"not so", 1))
    (quick.root / "reports/html/index.html").unlink()
    done = quick.snakemake("all", check=False, tier="quick")
    assert done.returncode != 0 and "remove data/reproduced/pages/index and run" in done.stdout
    shutil.rmtree(part)
    assert quick.jobs("all", tier="quick").keys() == {"all", "render_page", "assemble_report"}
    quick.snakemake("all", tier="quick")
    assert page.read_bytes() == before
    assert quick.jobs("all", tier="quick") == {}


def test_a_tolerance_changed_after_results_stays_on_record_through_a_failed_run(quick, tmp_path):
    """Snakemake deletes outputs before a job, and those of a failed one: not this."""
    shutil.copytree(quick.root, tmp_path / "project", symlinks=True)
    project = Project(tmp_path / "project")
    record = project.root / "data/reproduced/registered/nishitha.json"
    results = project.root / "data/reproduced/results/nishitha/flows.parquet"
    study = project.root / "configs/studies/nishitha.yaml"
    before, held, text = record.read_bytes(), results.read_bytes(), study.read_text()
    study.write_text(text.replace("relative: 0.02", "relative: 0.03", 1))
    target, stat = "data/reproduced/cells.csv", results.stat()
    results.write_bytes(held[:-9])
    os.utime(results, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert project.snakemake(target, check=False, tier="quick").returncode != 0
    assert record.read_bytes() == before
    results.write_bytes(held)
    os.utime(results, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    project.snakemake(target, tier="quick")
    assert len(json.loads(record.read_text())) == len(json.loads(before)) + 1
    # Taken back, it stays on record.
    study.write_text(text)
    project.snakemake("data/reproduced/provenance.json", tier="quick")
    changed = json.loads((project.root / "data/reproduced/provenance.json").read_text())
    history = changed["registered"]["nishitha"]
    assert [entry["tolerances"] for entry in history].count(history[0]["tolerances"]) == 2
    assert len(history) == 3


def test_snakemakes_own_report_holds_the_verdicts_with_captions(quick, tmp_path):
    target = tmp_path / "overview.zip"
    quick.snakemake("all", tier="quick", options=("--report", str(target)))
    with zipfile.ZipFile(target) as archive:
        page = next(name for name in archive.namelist() if name.endswith("report.html"))
        text = archive.read(page).decode()
        kept = [archive.read(name) for name in archive.namelist() if name.endswith(".csv")]
    assert {(quick.root / path).read_bytes() for path in VERDICTS} <= set(kept)
    for caption in (quick.root / "workflow" / "report").glob("*.rst"):
        assert " ".join(caption.read_text().split()[:4]) in text, caption.name


def test_another_folder_and_another_number_of_cores_give_the_same_bytes(quick, tmp_path):
    other = copy_project(tmp_path / "elsewhere", engines_from=quick.root)
    other.snakemake(*VERDICTS, cores=3, tier="quick")
    for path in RESULTS + VERDICTS:
        assert (other.root / path).read_bytes() == (quick.root / path).read_bytes(), path


def test_a_claims_wording_reruns_no_simulation(quick, changed):
    changed("configs/studies/nishitha.yaml", "  - id: c01", "  # reworded\n  - id: c01")
    jobs = quick.jobs("all", tier="quick")
    assert not SIMULATE & jobs.keys()
    assert jobs["evaluate_study"] == 1
    assert jobs["assemble_report"] == 1


def test_a_parameter_reruns_only_its_study(quick, changed):
    study = (quick.root / "configs/studies/nishitha.yaml").read_text(encoding="utf-8")
    line = next(x for x in study.splitlines() if x.strip().startswith("bottleneck_delay_s"))
    block = study[study.index(line) :].split("\n", 2)
    old, new = "\n".join(block[:2]), "\n".join(block[:2]).replace("0.05", "0.06")
    assert old != new
    changed("configs/studies/nishitha.yaml", old, new)
    jobs = quick.jobs("all", tier="quick")
    design = pd.read_csv(quick.root / "data/reproduced/design/nishitha.csv")
    assert sum(jobs.get(rule, 0) for rule in SIMULATE) == design["batch"].nunique()
    assert jobs["evaluate_study"] == jobs["design_study"] == jobs["collect_results"] == 1


def test_a_published_number_reruns_only_the_judging_of_its_study(quick, changed):
    old = 'II,100,newreno,bit/s,53000,0.053,"Table II'
    changed("data/published/saxena.csv", old, old + " (first)")
    jobs = quick.jobs("all", tier="quick")
    assert not (SIMULATE | {"design_study", "collect_results"}) & jobs.keys()
    assert jobs["evaluate_study"] == 1


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("batches/*-light-*.series.parquet", "simulate_batch"),
        ("results/saxena/flows.parquet", "collect_results"),
        ("evaluation/saxena/cells.csv", "evaluate_study"),
        ("conformance/ns3.csv", "run_conformance"),
    ],
)
def test_a_refused_file_that_is_removed_is_made_anew(quick, name, rule):
    path = min((quick.root / "data/reproduced").glob(name))
    assert f"(rule {rule})" in remedy(path)
    aside = path.rename(path.with_name("aside"))
    try:
        jobs = quick.jobs("all", tier="quick")
        assert jobs[rule] == 1
    finally:
        aside.rename(path)


def test_an_edited_verdict_is_not_rendered(quick):
    cells, page = quick.root / "data/reproduced/cells.csv", quick.root / "reports/html/index.html"
    before, stat, shown = cells.read_bytes(), cells.stat(), page.read_bytes()
    cells.write_bytes(before.replace(b",not reproduced,", b",reproduced,", 1))
    assert cells.read_bytes() != before
    done = subprocess.run(
        ["replicate", "render"],
        cwd=quick.root,
        env=quick.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    cells.write_bytes(before)
    os.utime(cells, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "cells.csv: gone, or not of the run that provenance.json tells of" in line
    assert "run `make report`" in line
    assert page.read_bytes() == shown


def test_the_engines_source_reruns_every_simulation(quick, changed):
    changed("workflow/engines/ns3/wheels/3.44.post0.lock", "# The pinned", "# The one pinned")
    jobs = quick.jobs("all", tier="quick")
    batches = list((quick.root / "data/reproduced/batches").glob("*.flows.parquet"))
    assert sum(jobs.get(rule, 0) for rule in SIMULATE) == len(batches)
    assert jobs["build_ns3_program"] == 1


def test_a_run_killed_midway_resumes_to_the_same_result(quick, tmp_path):
    victim = copy_project(tmp_path / "victim", engines_from=quick.root)
    target = "data/reproduced/results/nishitha/series.parquet"
    command = victim.command(target, tier="quick", studies="nishitha")
    with subprocess.Popen(
        command,
        cwd=victim.root,
        env=victim.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        store = victim.root / "data/reproduced/store"
        while len(list(store.glob("*/[0-9a-f]*/usage.json"))) < 5:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
    finished = {p: p.stat().st_mtime_ns for p in store.glob("*/[0-9a-f]*/usage.json")}
    assert finished and not (victim.root / target).exists()
    unlock = ["snakemake", "--unlock", "--cores", "1"]
    subprocess.run(unlock, cwd=victim.root, env=victim.environment(), check=True)
    victim.snakemake(target, tier="quick", studies="nishitha")
    assert (victim.root / target).read_bytes() == (quick.root / target).read_bytes()
    assert all(path.stat().st_mtime_ns == then for path, then in finished.items())


def test_one_scenario_can_be_run_again_to_the_same_bytes(quick, tmp_path):
    design = pd.read_csv(quick.root / "data/reproduced/design/kapadia.csv")
    scenario = design["scenario"].iloc[0]
    subprocess.run(
        ["replicate", "run", scenario, "--output", str(tmp_path)],
        cwd=quick.root,
        env=quick.environment(),
        check=True,
    )
    (entry,) = (quick.root / "data/reproduced/store").glob(f"*/{scenario}")
    for name in ("flows.csv", "series.csv", "run.json"):
        assert (tmp_path / name).read_bytes() == (entry / name).read_bytes()


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"tier": "huge"}, "tier"),
        ({"studies": "nobody"}, "studies"),
        ({"engines": "abacus"}, "engines"),
        ({"runtime": "abacus"}, "runtime"),
        # Not installed, or without our image: never a native run.
        ({"runtime": "apptainer"}, "runtime: apptainer"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_bad_settings_end_in_one_line_and_code_two(quick, settings, word):
    done = quick.snakemake("all", check=False, **settings)
    errors = [line for line in done.stdout.splitlines() if not line.startswith("Config file")]
    assert done.returncode == 2
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
    assert word in errors[0]


def test_a_further_paper_is_a_file_and_its_numbers(quick, tmp_path):
    guide = (quick.root / "configs/README.md").read_text(encoding="utf-8")
    study, numbers = (guide.split(f"```{kind}\n")[1].split("```")[0] for kind in ("yaml", "csv"))
    name = study.split("\nid: ")[1].split()[0]
    further = copy_project(tmp_path / "further", engines_from=quick.root)
    (further.root / f"configs/studies/{name}.yaml").write_text(study, encoding="utf-8")
    (further.root / f"data/published/{name}.csv").write_text(numbers, encoding="utf-8")
    further.snakemake("all", tier="quick", studies=name)
    cells = pd.read_csv(further.root / "data/reproduced/cells.csv")
    assert len(cells) == len(numbers.strip().splitlines()) - 1
    title = study.split("\ntitle: ")[1].split("\n")[0]
    assert title in (further.root / f"reports/html/{name}.html").read_text(encoding="utf-8")


def test_three_engines_give_their_own_verdicts_beside_each_other(quick, tmp_path):
    every = copy_project(tmp_path / "every", engines_from=quick.root)
    every.snakemake("all", tier="quick", studies="kapadia,nishitha", engines="ns3,ns2,linux")
    cells, alone = (
        pd.read_csv(p.root / "data/reproduced/cells.csv", dtype=str) for p in (every, quick)
    )
    counts = cells.groupby(["study", "engine"]).size()
    assert counts["nishitha"].to_dict() == {"linux": 60, "ns2": 60, "ns3": 60}
    first = cells[cells["engine"] == "ns3"].reset_index(drop=True)
    same = alone[alone["study"].isin(["kapadia", "nishitha"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(first, same)
    tested = cells[cells["reproduced_mean"].notna()].groupby(["study", "engine"]).size()
    assert {"linux", "ns3"} == set(tested["kapadia"].index)
    assert {"ns2", "ns3"} == set(tested["nishitha"].index)
    versions = json.loads((every.root / "data/reproduced/provenance.json").read_text())["engines"]
    assert re.fullmatch(r"6\.1\.\d+\+kernel-\w{12}\+guest-\w{12}", versions["linux"]["version"])


def test_available_engines_are_used_and_named(quick, tmp_path):
    copy = copy_project(tmp_path / "copy", engines_from=quick.root)
    (copy.root / ".cache").unlink()
    said = subprocess.run(
        ["replicate", "plan", "--tier", "quick"],
        cwd=copy.root,
        env=copy.environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    line = next(line for line in said.splitlines() if line.startswith("engines: "))
    assert line.startswith("engines: ns3, ns2 (linux not there; `make engines`")
