"""The whole workflow on real simulations: results, repeatability, reruns, interruption."""

import json
import os
import re
import signal
import subprocess
import time

import pandas as pd
import pytest

from tests.workflow.project import BUILDERS, QUICK, copy_project

STUDIES = ("dzivhani", "kapadia", "liang_shen", "nishitha", "saxena")
SIMULATE = {"simulate_batch", "simulate_heavy_batch"}
ENGINES = ("ns3", "ns2", "linux")
#: Small in tier quick; between them they run on every engine.
SMALL = ("nishitha", "kapadia")
RESULTS = [f"data/reproduced/results/{s}/{t}.parquet" for s in SMALL for t in ("flows", "series")]
JUDGED = [
    f"data/reproduced/evaluation/{s}/{name}"
    for s in SMALL
    for name in ("verdicts.parquet", "vacuity.csv", "audit.csv")
]


@pytest.fixture
def changed(whole):
    """Edit files of the finished project for one test; put them back afterwards."""
    before = {}

    def edit(path, old, new):
        file = whole.root / path
        before.setdefault(file, (file.read_bytes(), file.stat()))
        whole.edit(path, old, new)

    yield edit
    for file, (content, stat) in before.items():
        file.write_bytes(content)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_it_ends_in_a_report_with_every_study(whole):
    for name in ("index", *STUDIES):
        assert (whole.root / "reports" / "html" / f"{name}.html").stat().st_size > 2000
    claims = pd.read_csv(whole.root / "data/reproduced/claims.csv")
    assert set(claims["study"]) == set(STUDIES)
    assert set(claims["engine"]) == set(ENGINES)


def test_every_packet_is_accounted_for(whole):
    for study in STUDIES:
        flows = pd.read_parquet(whole.root / f"data/reproduced/results/{study}/flows.parquet")
        ends = flows["packets_received"] + flows["packets_dropped"] + flows["packets_in_flight"]
        assert (flows["packets_sent"] == ends).all()
        assert (flows["packets_in_flight"] >= 0).all()


def test_every_designed_run_has_its_results(whole):
    for study in STUDIES:
        design = pd.read_csv(whole.root / f"data/reproduced/design/{study}.csv")
        flows = pd.read_parquet(whole.root / f"data/reproduced/results/{study}/flows.parquet")
        keys = ["engine", "scenario"]
        asked, found = design.loc[design["supported"], keys], flows[keys]
        assert set(asked.itertuples(index=False)) == set(found.itertuples(index=False))


def test_provenance_names_what_ran(whole):
    document = json.loads((whole.root / "data/reproduced/provenance.json").read_text())
    assert document["config"]["tier"] == "quick"
    versions = {name: engine["version"] for name, engine in document["engines"].items()}
    assert versions.keys() == set(ENGINES)
    assert versions["ns3"].startswith("3.44")
    assert re.fullmatch(r"6\.1\.\d+\+kernel-\w{12}\+guest-\w{12}", versions["linux"])
    assert 0 < document["simulate"]["efficiency"] <= 1
    assert document["simulate"]["scenarios"] > 100


def test_a_second_run_does_nothing(whole):
    assert whole.jobs("all", **QUICK) == {}


def test_every_file_behind_the_report_is_asked_for(whole):
    """A missing one that nothing asks for is made again only when its maker runs anyway."""
    plan = whole.snakemake("all", dry=True, options=("--forceall",), **QUICK).stdout
    jobs = re.findall(r"^(?:local)?rule (\w+):\n((?:    .+\n)+)", plan, re.MULTILINE)
    files = {"input": set(), "output": set()}
    for rule, block in jobs:
        for kind, names in re.findall(r"^    (input|output): (.+)$", block, re.MULTILINE):
            if kind == ("input" if rule == "all" else "output") and rule not in BUILDERS:
                files[kind] |= set(names.replace(" (update)", "").split(", "))
    assert files["output"] <= files["input"]
    assert len(files["output"]) > 20


def test_results_that_are_gone_are_made_again_under_a_finished_report(whole, tmp_path):
    gone = [whole.root / "data/reproduced" / n for n in ("cells.csv", "results", "evaluation")]
    gone.append(whole.root / "data/reproduced/batches")
    for path in gone:
        path.rename(tmp_path / path.name)
    try:
        jobs = whole.jobs("all", **QUICK)
    finally:
        for path in gone:
            (tmp_path / path.name).rename(path)
    wanted = {"collect_results", "evaluate_study", "merge_evaluations", "render_report"}
    assert wanted | {"simulate_batch"} <= jobs.keys()
    assert jobs["collect_results"] == jobs["evaluate_study"] == len(STUDIES)


def test_a_report_that_is_gone_is_made_again(whole):
    page = whole.root / "reports/html/index.html"
    before = page.read_bytes()
    page.unlink()
    assert whole.jobs("all", **QUICK).keys() == {"all", "render_report"}
    whole.snakemake("all", **QUICK)
    assert page.read_bytes() == before
    assert whole.jobs("all", **QUICK) == {}


def test_a_claims_wording_reruns_no_simulation(whole, changed):
    changed("configs/studies/nishitha/claims.yaml", "  - id: c01", "  # reworded\n  - id: c01")
    jobs = whole.jobs("all", **QUICK)
    assert not SIMULATE & jobs.keys()
    assert jobs["evaluate_study"] == 1
    assert jobs["render_report"] == 1


def test_a_parameter_reruns_only_its_study(whole, changed):
    study = (whole.root / "configs/studies/nishitha/study.yaml").read_text(encoding="utf-8")
    line = next(x for x in study.splitlines() if x.strip().startswith("bottleneck_delay_s"))
    block = study[study.index(line) :].split("\n", 2)
    old, new = "\n".join(block[:2]), "\n".join(block[:2]).replace("0.05", "0.06")
    assert old != new
    changed("configs/studies/nishitha/study.yaml", old, new)
    jobs = whole.jobs("all", **QUICK)
    design = pd.read_csv(whole.root / "data/reproduced/design/nishitha.csv")
    assert sum(jobs.get(rule, 0) for rule in SIMULATE) == design["batch"].nunique()
    assert jobs["evaluate_study"] == jobs["design_study"] == jobs["collect_results"] == 1


def test_a_published_number_reruns_only_the_judging_of_its_study(whole, changed):
    old = 'II,100,newreno,bit/s,53000,0.053,"Table II'
    changed("data/published/saxena.csv", old, old + " (first)")
    jobs = whole.jobs("all", **QUICK)
    assert not (SIMULATE | {"design_study", "collect_results"}) & jobs.keys()
    assert jobs["evaluate_study"] == 1


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("batches/*-light-*.series.parquet", "simulate_batch"),
        ("results/saxena/flows.parquet", "collect_results"),
        ("evaluation/saxena/verdicts.parquet", "evaluate_study"),
    ],
)
def test_a_file_that_was_removed_is_made_anew(whole, name, rule):
    path = min((whole.root / "data/reproduced").glob(name))
    aside = path.rename(path.with_name("aside"))
    try:
        jobs = whole.jobs("all", **QUICK)
        assert jobs[rule] == 1
    finally:
        aside.rename(path)


def test_the_engines_source_reruns_every_simulation(whole, changed):
    changed("workflow/engines/ns3/wheels/3.44.post0.lock", "# The pinned", "# The one pinned")
    jobs = whole.jobs("all", **QUICK)
    batches = list((whole.root / "data/reproduced/batches").glob("ns3-*.flows.parquet"))
    assert sum(jobs.get(rule, 0) for rule in SIMULATE) == len(batches)
    assert jobs["build_ns3_program"] == 1


def test_a_run_killed_midway_elsewhere_resumes_on_more_cores_to_the_same_bytes(whole, tmp_path):
    victim = copy_project(tmp_path / "victim", engines_from=whole.root)
    settings = QUICK | {"studies": ",".join(SMALL)}
    with subprocess.Popen(
        victim.command(*RESULTS, **settings),
        cwd=victim.root,
        env=victim.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        while len(victim.finished_runs()) < 5:
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
    finished = victim.finished_runs()
    assert finished and not any((victim.root / path).exists() for path in RESULTS)
    unlock = ["snakemake", "--unlock", "--cores", "1"]
    subprocess.run(unlock, cwd=victim.root, env=victim.environment(), check=True)
    victim.snakemake(*RESULTS, *JUDGED, cores=3, **settings)
    for path in RESULTS + JUDGED:
        assert (victim.root / path).read_bytes() == (whole.root / path).read_bytes(), path
    assert victim.finished_runs().items() >= finished.items()
    # An engine's verdicts are the same without the others beside it.
    victim.snakemake(*JUDGED, **settings | {"engines": "ns3"})
    for path in JUDGED:
        read = pd.read_parquet if path.endswith(".parquet") else pd.read_csv
        beside, alone = (read(p.root / path) for p in (whole, victim))
        if "engine" in beside:
            beside = beside[beside["engine"] == "ns3"].reset_index(drop=True)
        pd.testing.assert_frame_equal(beside, alone)


@pytest.mark.parametrize(
    ("study", "engine"), [("saxena", "ns3"), ("nishitha", "ns2"), ("kapadia", "linux")]
)
def test_one_scenario_can_be_run_again_to_the_same_bytes(whole, tmp_path, study, engine):
    design = pd.read_csv(whole.root / f"data/reproduced/design/{study}.csv")
    scenario = design[design["supported"] & (design["engine"] == engine)]["scenario"].iloc[0]
    stored = whole.stores[engine].tables(scenario)
    # By its id, and by the file that it was left in.
    for given, folder in ((scenario, tmp_path / "1"), (tmp_path / "1/scenario.json", tmp_path)):
        done = subprocess.run(
            ["replicate", "run", given, "--engine", engine, "--output", folder],
            cwd=whole.root,
            env=whole.environment(),
            check=True,
            capture_output=True,
            text=True,
        )
        assert {name: (folder / name).read_bytes() for name in stored} == stored
        flows = pd.read_csv(folder / "flows.csv")["flow"]
        assert [line.split()[0] for line in done.stdout.splitlines()[1:-1]] == list(flows)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"tier": "huge"}, "tier"),
        ({"runtime": "apptainer"}, "runtime: "),
        ({"colour": "red"}, "colour"),
    ],
)
def test_bad_settings_end_in_one_line_and_code_two(whole, settings, word):
    done = whole.snakemake("all", check=False, **settings)
    errors = [line for line in done.stdout.splitlines() if not line.startswith("Config file")]
    assert done.returncode == 2
    assert len(errors) == 1
    assert errors[0].startswith("error: ")
    assert word in errors[0]


def test_a_further_paper_is_a_file_and_its_numbers(whole, tmp_path):
    guide = (whole.root / "configs/README.md").read_text(encoding="utf-8")
    steps = guide.split("\n## A new study")[1]
    study, numbers = (steps.split(f"```{kind}\n")[1].split("```")[0] for kind in ("yaml", "csv"))
    name = study.split("\nid: ")[1].split()[0]
    further = copy_project(tmp_path / "further", engines_from=whole.root)
    (further.root / f"configs/studies/{name}").mkdir()
    (further.root / f"configs/studies/{name}/study.yaml").write_text(study, encoding="utf-8")
    (further.root / f"data/published/{name}.csv").write_text(numbers, encoding="utf-8")
    further.snakemake("all", tier="quick", studies=name)
    cells = pd.read_csv(further.root / "data/reproduced/cells.csv")
    assert len(cells) == len(numbers.strip().splitlines()) - 1
    title = study.split("\ntitle: ")[1].split("\n")[0]
    assert title in (further.root / f"reports/html/{name}.html").read_text(encoding="utf-8")


def test_three_engines_give_their_own_verdicts_beside_each_other(whole):
    cells = pd.read_csv(whole.root / "data/reproduced/cells.csv", dtype=str)
    counts = cells.groupby(["study", "engine"]).size()
    assert counts["nishitha"].to_dict() == {"linux": 60, "ns2": 60, "ns3": 60}
    tested = cells[cells["reproduced_mean"].notna()].groupby(["study", "engine"]).size()
    assert {"linux", "ns3"} == set(tested["kapadia"].index)
    assert {"ns2", "ns3"} == set(tested["nishitha"].index)


def test_available_engines_are_used_and_named(whole, tmp_path):
    copy = copy_project(tmp_path / "copy", engines_from=whole.root)
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
