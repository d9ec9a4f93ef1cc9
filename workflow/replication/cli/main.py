"""The command line: `replicate --help`."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from replication.cli.script import DATA, ROOT
from replication.design.config import (
    listed,
    load_config,
    load_sensitivity,
    load_study,
    load_tier,
    study_ids,
)
from replication.engines.catalogue import ENGINES, find_package, package_warning
from replication.engines.input_file import INPUT_FILE, SCENARIO_FILE
from replication.simulate.environment import enter
from replication.study.errors import InputError, RunError, check_known, end_of
from replication.study.files import read_json, read_model, write_text
from replication.study.model import EngineName
from replication.study.scenario import Scenario
from replication.study.study import Study

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="""Rebuild the experiments of published TCP studies and compare the numbers.

\b
Examples:
  replicate plan --tier quick --studies saxena
  replicate run 0123456789abcdef --engine ns3 --output /tmp/look
  replicate release --check""",
)
CONFIG = ROOT / "configs" / "config.yaml"
Ns3 = Annotated[str | None, typer.Option("--ns3-version", help="Version of engine ns3.")]
DIFFERENCES = Path("reports/compare/differences.csv")
Data = Annotated[Path, typer.Option(help="Folder of reproduced results.")]
Studies = Annotated[str | None, typer.Option(help="Comma-separated study ids, or all.")]


@app.command()
def validate(studies: Studies = None) -> None:
    """Check configuration, tiers, studies, published numbers and regions.

    Also print what can be judged of each study in the tiers quick and paper on each engine.

    Example: replicate validate --studies saxena
    """
    from replication.explore.modern_kernel import plan_modern
    from replication.explore.modern_model import load_modern
    from replication.explore.regions.region_model import load_settings, region_names
    from replication.explore.regions.region_result import check_region

    load_config(CONFIG)
    load_sensitivity(ROOT)
    for path in sorted((ROOT / "configs" / "tiers").glob("*.yaml")):
        load_tier(ROOT, path.stem)
    everything = studies in (None, "all")
    for name in study_ids(ROOT) if everything else dict.fromkeys(listed(str(studies))):
        print(*_validated(load_study(ROOT, name)), sep="\n")
    load_settings(ROOT)
    if everything:
        for name in sorted(set(load_modern(ROOT).studies) & set(study_ids(ROOT))):
            plan_modern(ROOT, name, "paper")
            print(f"{name} on a modern kernel: valid")
        for name in region_names(ROOT):
            print(f"{name}: {check_region(ROOT, name)}: valid")


def _validated(study: Study) -> Iterator[str]:
    from replication.design.design import design_study, repeat_warnings
    from replication.design.new_study import TO_FILL_IN

    runs = design_study(study, load_tier(ROOT, "paper"), ["ns3"])
    points = {(run.experiment, run.point) for run in runs}
    yield (
        f"{study.id}: {len(study.experiments)} experiments, {len(points)} points, "
        f"{len(study.tables)} tables, {len(study.claims)} claims: valid"
    )
    yield from _judgeable(study, ("quick", "paper"), [*ENGINES])
    if count := repr(study).count(TO_FILL_IN):
        yield f"warning: {study.id}, {count} texts are {TO_FILL_IN!r}"
    for warning in repeat_warnings(runs):
        yield f"warning: {study.id}, {warning}"


@app.command()
def plan(
    tier: Annotated[str | None, typer.Option(help="quick, paper or deep.")] = None,
    studies: Studies = None,
    engines: Annotated[str | None, typer.Option(help="Comma-separated engines.")] = None,
    ns3_version: Ns3 = None,
    runtime: Annotated[str | None, typer.Option(help="native, docker or podman.")] = None,
) -> None:
    """Print what would run, how many scenarios, and the expected cost.

    Example: replicate plan --tier quick --studies saxena,nishitha
    """
    given = {key: value for key, value in locals().items() if value is not None}
    from replication.design.pipeline import Pipeline

    pipeline = Pipeline.load(ROOT, given)
    print(*pipeline.summary(), sep="\n")
    for study in pipeline.documents.values():
        print(*_judgeable(study, [pipeline.config.tier], pipeline.engines), sep="\n")


def _judgeable(study: Study, tiers: Sequence[str], engines: list[str]) -> Iterator[str]:
    """Check a study and its possible causes; yield what tiers can judge of it on each engine."""
    from replication.design.design import design_study
    from replication.design.study_check import check_study
    from replication.study.published import published_path
    from replication.verdicts.cause import check_explanations, load_explanations
    from replication.verdicts.evaluate import judgeable

    cells = check_study(study, published_path(ROOT, study.id))
    if (explanations := load_explanations(ROOT, study.id)) is not None:
        check_explanations(explanations, study, cells)
    for tier in tiers:
        runs = design_study(study, load_tier(ROOT, tier), engines, first_alone=True)
        for sentence in judgeable(study, cells, runs):
            yield f"{study.id}, tier {tier}: {sentence}"


@app.command()
def new_study(
    study: Annotated[str, typer.Argument(help="Id and folder of the study, like smith_2004.")],
    title: Annotated[str, typer.Option(help="Short title.")] = "",
    engine: Annotated[str, typer.Option(help="The paper's system: ns3, ns2 or linux.")] = "ns2",
    like: Annotated[str, typer.Option(help="A study whose set-up is copied.")] = "",
) -> None:
    """Write a valid study and its published numbers, to be filled in.

    Start from an example of the engine, or from the set-up of another study without its quotes.

    Example: replicate new-study smith_2004 --engine linux
    """
    from replication.design.new_study import new_study as write_new_study

    print(*write_new_study(ROOT, study, title, engine, like), sep="\n")
    print(f"next: fill them in, then `replicate validate --studies {study}`")


@app.command()
def run(
    scenario: Annotated[str, typer.Argument(help="A JSON file, or an id from the report.")],
    output: Annotated[Path, typer.Option(help="Folder for the tables.")] = Path("run"),
    engine: EngineName = "ns3",
    data: Data = DATA,
) -> None:
    """Run one scenario on an engine, print its flows and write its tables.

    Example: replicate run 0123456789abcdef --engine ns3 --output /tmp/look
    """
    from replication.design.single_run import run_single
    from replication.simulate.store import TABLES

    found = find_scenario(data, scenario)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "run"
        used, tables = run_single(ROOT, data, found, engine, work)
        output.mkdir(parents=True, exist_ok=True)
        names = (*TABLES, SCENARIO_FILE, INPUT_FILE)
        for name in names:
            shutil.copyfile(work / name, output / name)
    flows = tables["flows.csv"].to_pandas()
    print(flows.to_string(index=False, na_rep="", float_format="{:.6g}".format))
    print(f"{output}: {', '.join(names)} ({used.cpu_s:.2f} s of CPU)")


def find_scenario(data: Path, scenario: str) -> Scenario:
    """Return the scenario in a file, or that with an id in a design or other results."""
    if scenario.endswith(".json") or Path(scenario).is_file():
        return read_model(Path(scenario), Scenario)
    designed, explained = "design/scenarios/*.json", "sensitivity/*/explained_scenarios.json"
    for place in (designed, explained, "regions/*/*.scenarios.json"):
        for path in sorted(data.glob(place)):
            if document := read_json(path).get(scenario):
                return Scenario.model_validate(document)
    raise InputError(
        f"scenario: no design in {data / 'design/scenarios'} has {scenario!r}; give a JSON file, "
        "or an id from the report or from a design's `scenario` column"
    )


@app.command()
def render(
    data: Data = DATA,
    output: Annotated[Path | None, typer.Option(help="Default: reports/html.")] = None,
) -> None:
    """Render the HTML report from existing results, without simulations.

    Without results render the released ones into reports/html-release.
    """
    from replication.report.release import RENDERED_TO, released_results
    from replication.report.render import DOWNLOADS
    from replication.report.render import render as render_report

    if data == DATA and not output and not any((data / name).is_file() for name in DOWNLOADS):
        released = released_results(ROOT)
        render_report(ROOT, released, released / "no notebooks", RENDERED_TO)
        print(f"{RENDERED_TO}/index.html: the released results; `make report` makes your own")
        return
    if data != DATA and not output:
        raise InputError(f"--output: give a folder for the pages of {data}, not reports/html")
    notebooks = Path("reports/notebooks") if data == DATA else data / "none"
    render_report(ROOT, data, notebooks, output or Path("reports/html"))


@app.command()
def release(
    data: Data = DATA,
    check: Annotated[bool, typer.Option("--check", help="Verify the existing release.")] = False,
) -> None:
    """Write finished results to data/release and their pages to reports/release, for a commit.

    Also pack the series of all runs into data/series-<hash>.zip, which is not committed. With
    --check verify the existing release, judge its features and flows again, and end with code 2 if
    anything differs.

    Example: replicate release --check
    """
    from replication.report.release import check_release
    from replication.report.render import make_release

    print(check_release(ROOT) if check else make_release(ROOT, data))


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(help="Folder of results, of a release or a clone.")],
    after: Annotated[Path, typer.Argument(help="The folder to compare with.")],
    output: Annotated[Path, typer.Option(help="Table of the differences.")] = DIFFERENCES,
) -> None:
    """Print which numbers and verdicts differ between two results, and whether beyond noise.

    Example: replicate compare data/release data/reproduced
    """
    from replication.compare.verdicts import compare_results, write_differences
    from replication.report.release import results_in

    (old, *tiers), (new, tier) = results_in(before), results_in(after)
    found = compare_results(old, new)
    print(*write_differences(found, output, [*tiers, tier]), sep="\n")
    for item in found:
        if item.verdict_moved and item.before and item.after:
            row, moved = item.row(), " -> ".join(item.verdicts)
            print(f"  {row['study']} {item.kind} {row['item']} on {row['engine']}: {moved}")
    print(output)


@app.command()
def fetch_results(
    address: Annotated[str | None, typer.Argument(help="Default: that of archive.yaml.")] = None,
) -> None:
    """Download, verify and unpack the series of all released runs into data/series."""
    from replication.report.release import fetch_results as fetch

    print(fetch(ROOT, address))


@app.command()
def fetch_traces(
    source: Annotated[
        Path | None, typer.Option("--from", help="A clone of that repository.")
    ] = None,
) -> None:
    """Download and verify the traces of the authors' GitHub repository, into data/traces."""
    from replication.metrics.trace_source import fetch_traces as fetch

    print(fetch(ROOT, source))


@app.command(hidden=True)
def refresh_notebooks() -> None:
    """Execute every notebook on the release, store its outputs, and write its page."""
    from replication.report.notebooks.notebook import execute, to_html
    from replication.report.pages.page import ran
    from replication.report.release import NOTEBOOK_PAGES, PROVENANCE, RELEASED

    whose = ran(read_json(ROOT / RELEASED / PROVENANCE))["whose"]
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        execute(path, path, {})
        to_html(path, ROOT / NOTEBOOK_PAGES / f"{path.stem}.html", whose)
        print(path)


@app.command()
def engines(ns3_version: Ns3 = None) -> None:
    """List the engines with their versions, and the missing packages."""
    from replication.simulate.process import written_version

    config = load_config(CONFIG, {"ns3_version": ns3_version} if ns3_version else None)
    for name in ENGINES:
        engine = config.engine(name)
        if packages := engine.missing(ROOT):
            print(f"{name}: not installed; missing {', '.join(packages)}: run `make engines`")
            continue
        fingerprint = engine.fingerprint(ROOT)
        program = ROOT / engine.program(ROOT, DATA)
        if program.is_file():
            print(f"{name}: built, {engine.exact_version(written_version(program), fingerprint)}")
        elif engine.built(ROOT):
            print(f"{name}: installed, built when first used")
        else:
            print(f"{name}: not built: run `make engines`")
        if warning := package_warning(find_package(ROOT, name)):
            print(f"{name}: warning: {warning}")


@app.command(hidden=True)
def install_engines(
    engines: Annotated[str, typer.Option(help="Comma-separated engines.")] = "all",
) -> None:
    """Install the Debian packages that engines require, for `make engines`.

    Example: replicate install-engines --engines ns2
    """
    names = list(ENGINES) if engines in ("all", "available") else listed(engines)
    check_known("engines", names, ENGINES)
    packages = sorted({package for name in names for package in ENGINES[name].missing(ROOT)})
    if not packages:
        print("all packages are installed")
        return
    command = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages]
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise InputError(f"engines: packages are missing; run as root: {' '.join(command)}")
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for words in (["apt-get", "update", "--quiet"], command):
        print(" ".join(words), flush=True)
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["(it printed nothing)"])[-1]
            raise InputError(f"engines: `{' '.join(words)}` failed: {last}")


@app.command()
def metrics() -> None:
    """List the metrics of cells and claims, with units and definitions."""
    from replication.metrics.metric_model import METRICS

    for name, metric in METRICS.items():
        print(f"{name} [{metric.unit}]: {metric.description}")


@app.command()
def schemas() -> None:
    """Write the JSON schema of studies, for editors."""
    from replication.cli.schema import schema_text

    path = ROOT / "configs" / "schemas" / "study.schema.json"
    write_text(path, schema_text(Study))
    print(path)


def main() -> None:
    """Run `replicate`: exit code 2 for wrong input, 1 for a failed run, with a one-line message."""
    try:
        enter(ROOT)
        app()
    except (InputError, RunError, OSError, MemoryError) as error:
        known = end_of(error)
        if known is None:
            raise
        print(f"error: {known[1]}", file=sys.stderr)
        sys.exit(known[0])


if __name__ == "__main__":
    main()
