"""The whole workflow on real simulations: results, repeatability, reruns."""

import json
import os
import re
import time

import pandas as pd
import pytest

from tests.workflow.project import QUICK, copy_project, jobs_in

STUDIES = ("dzivhani", "kapadia", "liang_shen", "nishitha", "rebbr", "rfc9438", "saxena")
SIMULATE = {"simulate_batch", "simulate_heavy_batch"}
ENGINES = ("ns3", "ns2", "linux")
DATA = "data/reproduced"


def simulations(jobs):
    """Return how many batches would be simulated."""
    return sum(jobs.get(rule, 0) for rule in SIMULATE)


def test_every_study_has_verdicts_of_its_engines_and_a_page(whole):
    for name in ("index", *STUDIES):
        assert (whole.root / "reports" / "html" / f"{name}.html").stat().st_size > 2000
    claims = pd.read_csv(whole.root / DATA / "claims.csv")
    assert (set(claims["study"]), set(claims["engine"])) == (set(STUDIES), set(ENGINES))
    cells = pd.read_csv(whole.root / DATA / "cells.csv", dtype=str)
    counts = cells.groupby(["study", "engine"]).size()
    assert counts["nishitha"].to_dict() == {"linux": 60, "ns2": 60, "ns3": 60}
    measured = cells[cells["reproduced_mean"].notna()].groupby("study")["engine"].agg(set)
    assert measured["kapadia"] == {"linux", "ns3"}
    assert measured["nishitha"] == {"ns2", "ns3"}


@pytest.mark.parametrize("study", STUDIES)
def test_every_designed_run_has_its_results_and_every_packet_is_accounted_for(whole, study):
    design = pd.read_csv(whole.root / DATA / f"design/{study}.csv")
    flows = pd.read_parquet(whole.root / DATA / f"results/{study}/flows.parquet")
    keys = ["engine", "scenario"]
    asked, measured = design.loc[design["supported"], keys], flows[keys]
    assert set(asked.itertuples(index=False)) == set(measured.itertuples(index=False))
    ends = flows["packets_received"] + flows["packets_dropped"] + flows["packets_in_flight"]
    assert (flows["packets_sent"] == ends).all()
    assert (flows["packets_in_flight"] >= 0).all()


def test_provenance_names_engines_versions_and_stages(whole):
    document = json.loads((whole.root / DATA / "provenance.json").read_text())
    assert document["config"]["tier"] == "quick"
    versions = {name: engine["version"] for name, engine in document["engines"].items()}
    assert versions.keys() == set(ENGINES)
    assert versions["ns3"].startswith("3.44")
    assert re.fullmatch(r"6\.12\.\d+\+kernel-\w{12}\+dctcp-\w{12}\+guest-\w{12}", versions["linux"])
    assert document["simulate"]["scenarios"] > 100 and document["simulate"]["simulator_cpu_s"] > 0


def test_a_second_run_does_nothing_but_restore_a_lost_report(whole):
    assert whole.jobs("all", **QUICK) == {}
    page = whole.root / "reports/html/index.html"
    before = page.read_bytes()
    page.unlink()
    done = whole.snakemake("all", **QUICK)
    assert jobs_in(done.stdout).keys() == {"all", "render_report"}
    assert page.read_bytes() == before
    assert whole.jobs("all", **QUICK) == {}


@pytest.mark.parametrize(
    ("gone", "wanted"),
    [
        ("batches/*-light-*.series.parquet", {"simulate_batch": 1}),
        ("results/saxena/flows.parquet", {"collect_results": 1}),
        ("evaluation/saxena/verdicts.parquet", {"evaluate_study": 1}),
        ("batches", {"collect_results": len(STUDIES)}),
        ("cells.csv", {"merge_evaluations": 1, "render_report": 1}),
    ],
)
def test_deleted_files_are_made_again_under_a_finished_report(whole, gone, wanted):
    path = min((whole.root / DATA).glob(gone))
    aside = path.rename(path.with_name("aside"))
    try:
        assert wanted.items() <= whole.jobs("all", **QUICK).items()
    finally:
        aside.rename(path)


@pytest.fixture
def changed(whole):
    """Edit a file of the finished project for one test, and restore it afterwards."""
    before = {}

    def edit(path, old, new):
        file = whole.root / path
        before[file] = (file.read_bytes(), file.stat())
        whole.edit(path, old, new)
        return whole.jobs("all", **QUICK)

    yield edit
    for file, (content, stat) in before.items():
        file.write_bytes(content)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_changing_a_published_number_or_the_wording_of_a_claim_reruns_no_simulation(changed):
    jobs = changed(
        "data/published/saxena.csv", '53000,0.053,"Table II', '53000,0.053,"The Table II'
    )
    # The design does not depend on published numbers.
    assert not (SIMULATE | {"design_study", "collect_results"}) & jobs.keys()
    assert jobs["evaluate_study"] == jobs["render_report"] == 1
    claims = "configs/studies/nishitha/claims.yaml"
    jobs = changed(claims, "  - id: c01", "  # reworded\n  - id: c01")
    assert not SIMULATE & jobs.keys()
    assert (jobs["evaluate_study"], jobs["render_report"]) == (2, 1)


def test_changed_time_stamps_rerun_nothing(whole):
    paths = [
        path for path in whole.root.rglob("*") if not path.is_relative_to(whole.root / ".cache")
    ]
    now = time.time()
    # Sources last, as if they were newer than all that was made of them.
    paths.sort(key=lambda path: path.is_relative_to(whole.root / "workflow"))
    for number, path in enumerate(path for path in paths if path.is_file()):
        os.utime(path, (now + 1e-3 * number,) * 2)
    assert whole.jobs("all", **QUICK) == {}


#: A kind of source, a change of its content, and a rule that it reruns.
CONTENTS = [
    ("workflow/scripts/evaluate_study.py", "\nname, folder", "\n\nname, folder", "evaluate_study"),
    ("workflow/scripts/simulate_batch.py", "\nwith job", "\n\nwith job", "simulate_batch"),
    ("workflow/replication/verdicts/evaluate.py", '"""', '""" ', "merge_evaluations"),
    ("configs/tiers/quick.yaml", "id: quick", "# changed\nid: quick", "design_study"),
    (
        "configs/studies/nishitha/study.yaml",
        "id: nishitha",
        "# x\nid: nishitha",
        "execute_notebook",
    ),
    ("data/published/nishitha.csv", "Table", "The table", "judge_self_consistency"),
    ("notebooks/homogeneous_dumbbell.ipynb", '"cells"', '"cells" ', "execute_notebook"),
    ("notebooks/ecn.ipynb", '"cells"', '"cells" ', "execute_lecture"),
    ("configs/engine_differences.yaml", "\n", "\n# changed\n", "compare_engines"),
    ("configs/studies/nishitha/findings.yaml", "\n", "\n# changed\n", "render_report"),
]


@pytest.mark.parametrize(("path", "old", "new", "rule"), CONTENTS)
def test_changed_content_with_an_old_time_stamp_reruns_its_rule(whole, path, old, new, rule):
    file = whole.root / path
    content, stat = file.read_bytes(), file.stat()
    try:
        file.write_text(file.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        assert rule in whole.jobs("all", **QUICK)
    finally:
        file.write_bytes(content)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_a_changed_parameter_reruns_only_its_study(whole, changed):
    old = "  bottleneck_delay_s:\n    value: 0.05"
    jobs = changed("configs/studies/nishitha/study.yaml", old, old.replace("0.05", "0.06"))
    design = pd.read_csv(whole.root / DATA / "design/nishitha.csv")
    assert simulations(jobs) == design["batch"].nunique()
    assert jobs["evaluate_study"] == jobs["design_study"] == jobs["collect_results"] == 1


def test_an_engines_verdicts_are_the_same_without_the_others(whole, tmp_path):
    names = ("verdicts.parquet", "audit.csv")
    judged = [f"{DATA}/evaluation/nishitha/{name}" for name in names]
    copy = copy_project(tmp_path / "copy", engines_from=whole.root)
    copy.adopt_results(whole.root)
    copy.snakemake(*judged, tier="quick", studies="nishitha")
    for path in judged:
        read = pd.read_parquet if path.endswith(".parquet") else pd.read_csv
        in_whole, alone = (read(project.root / path) for project in (whole, copy))
        if "engine" in in_whole:
            in_whole = in_whole[in_whole["engine"] == "ns3"].reset_index(drop=True)
        pd.testing.assert_frame_equal(in_whole, alone)


@pytest.mark.parametrize(
    ("study", "engine"), [("saxena", "ns3"), ("nishitha", "ns2"), ("kapadia", "linux")]
)
def test_a_single_scenario_can_be_run_again_with_the_same_bytes(whole, tmp_path, study, engine):
    design = pd.read_csv(whole.root / DATA / f"design/{study}.csv")
    scenario = design[design["supported"] & (design["engine"] == engine)]["scenario"].iloc[0]
    stored = whole.stores[engine].tables(scenario)
    # By its id, and by its file.
    for given, folder in ((scenario, tmp_path / "1"), (tmp_path / "1/scenario.json", tmp_path)):
        output = whole.replicate("run", given, "--engine", engine, "--output", folder)
        assert {name: (folder / name).read_bytes() for name in stored} == stored
        flows = pd.read_csv(folder / "flows.csv")["flow"]
        assert [line.split()[0] for line in output.splitlines()[1:-1]] == list(flows)


def test_a_further_paper_takes_only_a_document_and_its_numbers(whole, tmp_path):
    further = copy_project(tmp_path / "further", engines_from=whole.root)
    further.replicate("new-study", "smith_2004", "--title", "Of Reno")
    further.snakemake("all", tier="quick", studies="smith_2004")
    cells = pd.read_csv(further.root / DATA / "cells.csv")
    assert set(cells["row"]) == {"d10", "d50", "d100"}
    page = further.root / "reports/html/smith_2004.html"
    assert "Of Reno" in page.read_text(encoding="utf-8")
