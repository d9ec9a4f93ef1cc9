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

from replication.base.environment import enter
from replication.base.errors import InputError, RunError, check_known, end_of
from replication.base.files import read_json, write_text
from replication.base.model import EngineName
from replication.base.position import located, read_model
from replication.cli.script import DATA, ROOT
from replication.design.config import (
    STUDIES,
    explanations_path,
    listed,
    load_config,
    load_sensitivity,
    load_settings_changes,
    load_study,
    load_tier,
    study_files,
    study_ids,
)
from replication.engines.catalogue import ENGINES, find_package, locked_packages, package_warning
from replication.engines.generation import FOLDER, load_generation, write_generation
from replication.engines.input_file import INPUT_FILE, SCENARIO_FILE
from replication.engines.model import Engine
from replication.simulate.store import FAILED
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
Runtime = Annotated[str | None, typer.Option(help="native, docker or podman.")]
#: The scenarios of designs, explanations, regions and failed runs, below a folder of results.
_SCENARIOS = (
    "design/scenarios/*.json",
    "sensitivity/*/explained_scenarios.json",
    "regions/*/*.scenarios.json",
    f"store/*/*{FAILED}",
)
Data = Annotated[Path, typer.Option(help="Folder of reproduced results.")]
Studies = Annotated[str | None, typer.Option(help="Comma-separated study ids, or all.")]


@app.command()
def validate(studies: Studies = None) -> None:
    """Check configuration, studies, published numbers, findings, causes, explanations and regions.

    Also print what can be judged of each study in the tiers quick and paper on each engine.

    Example: replicate validate --studies saxena
    """
    from replication.design.unread import check_all_read, check_folder
    from replication.explore.interventions import check_interventions
    from replication.explore.named_variation import check_variations
    from replication.explore.regions.region_model import load_region, region_names
    from replication.explore.regions.region_result import check_region

    everything = studies in (None, "all")
    names = study_ids(ROOT) if everything else list(dict.fromkeys(listed(str(studies))))
    _check_settings()
    if everything:
        check_all_read(ROOT)
    for name in names:
        check_folder(ROOT / STUDIES / name)
        print(*_validated(load_study(ROOT, name)), sep="\n")
    for varied in check_variations(ROOT, names):
        print(f"{varied}: valid")
    if count := check_interventions(ROOT, names):
        print(f"{count} interventions: valid")
    for name in region_names(ROOT):
        if everything or load_region(ROOT, name).study in names:
            print(f"{name}: {check_region(ROOT, name)}: valid")


def _check_settings() -> None:
    """Check the documents that belong to no single study."""
    from replication.compare.agreement import load_differences
    from replication.explore.interventions import check_named
    from replication.explore.regions.region_model import load_settings
    from replication.metrics.trace_source import load_sources

    load_config(CONFIG)
    load_settings_changes(ROOT)
    for load in (load_sensitivity, load_settings, load_differences, load_sources, locked_packages):
        load(ROOT)
    differences = load_differences(ROOT).differences
    causes = {difference.id: difference.causes for difference in differences}
    check_named(ROOT, "engine differences", causes)
    for path in sorted((ROOT / "configs" / "tiers").glob("*.yaml")):
        load_tier(ROOT, path.stem)


def _validated(study: Study) -> Iterator[str]:
    from replication.design.design import design_study, repeat_warnings
    from replication.design.new_study import TO_FILL_IN
    from replication.design.study_check import study_points
    from replication.explore.finding_check import check_findings
    from replication.explore.interventions import check_causes
    from replication.explore.robustness import check_scale

    with located(*study_files(ROOT, study.id)):
        all_points = study_points(study)
        judged = list(_judgeable(study, ("quick", "paper"), [*ENGINES]))
        runs = design_study(study, load_tier(ROOT, "paper"), ["ns3"])
    check_findings(ROOT, study, all_points)
    check_causes(ROOT, study)
    check_scale(ROOT, study)
    points = {(run.experiment, run.point) for run in runs}
    yield (
        f"{study.id}: {len(study.experiments)} experiments, {len(points)} points, "
        f"{len(study.tables)} tables, {len(study.claims)} claims: valid"
    )
    yield from judged
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
    runtime: Runtime = None,
) -> None:
    """Print what would run, how many scenarios, and the expected cost.

    Example: replicate plan --tier quick --studies saxena,nishitha
    """
    from replication.design.pipeline import Pipeline

    given = _given(
        tier=tier, studies=studies, engines=engines, ns3_version=ns3_version, runtime=runtime
    )
    pipeline = Pipeline.load(ROOT, given)
    print(*pipeline.summary(), sep="\n")
    for name in pipeline.studies:
        with located(*study_files(ROOT, name)):
            study = load_study(ROOT, name)
            print(*_judgeable(study, [pipeline.config.tier], pipeline.engines), sep="\n")


def _given(**options: str | None) -> dict[str, str]:
    """Return the options that were given, which override the configuration."""
    return {key: value for key, value in options.items() if value is not None}


def _judgeable(study: Study, tiers: Sequence[str], engines: list[str]) -> Iterator[str]:
    """Check a study and its possible causes; yield what tiers can judge of it on each engine."""
    from replication.design.design import design_study
    from replication.design.study_check import check_series, check_study
    from replication.explore.cause import check_explanations, load_explanations
    from replication.study.published import published_path
    from replication.verdicts.evaluate import judgeable

    cells = check_study(study, published_path(ROOT, study.id))
    if (explanations := load_explanations(ROOT, study.id)) is not None:
        with located(explanations_path(ROOT, study.id)):
            check_explanations(explanations, study, cells)
    for tier in tiers:
        runs = design_study(study, load_tier(ROOT, tier), engines, first_alone=True)
        check_series(runs, ROOT)
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
    ns3_version: Ns3 = None,
    runtime: Runtime = None,
) -> None:
    """Run one scenario on an engine, print its flows and write its tables.

    Example: replicate run 0123456789abcdef --engine ns3 --output /tmp/look
    """
    from replication.design.single_run import run_single
    from replication.simulate.store import TABLES

    document = find_scenario(data, scenario)
    settings = _given(ns3_version=ns3_version, runtime=runtime)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "run"
        used, tables = run_single(ROOT, data, document, engine, work, settings)
        output.mkdir(parents=True, exist_ok=True)
        names = (*TABLES, SCENARIO_FILE, INPUT_FILE)
        for name in names:
            shutil.copyfile(work / name, output / name)
    flows = tables["flows.csv"].to_pandas()
    print(flows.to_string(index=False, na_rep="", float_format="{:.6g}".format))
    print(f"{output}: {', '.join(names)} ({used.cpu_s:.2f} s of CPU)")


def find_scenario(data: Path, scenario: str) -> Scenario:
    """Return the scenario in a file, or that with an id in results or in the release."""
    if scenario.endswith(".json") or Path(scenario).is_file():
        return read_model(Path(scenario), Scenario)
    for folder in _with_released(data):
        for place in _SCENARIOS:
            for path in sorted(folder.glob(place)):
                if document := read_json(path).get(scenario):
                    return Scenario.model_validate(document)
    raise InputError(
        f"scenario: no design in {data / 'design/scenarios'} or of the release has {scenario!r}; "
        "give a JSON file, or an id from the report or from a design's `scenario` column (those "
        "of regions are there after `make regions`)"
    )


def _with_released(data: Path) -> Iterator[Path]:
    """Yield results and those of the release, which are designed again when first needed."""
    from replication.report.manifest import MANIFEST
    from replication.report.release import released_results

    yield data
    if (ROOT / MANIFEST).is_file():
        yield released_results(ROOT)


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
    full: Annotated[bool, typer.Option("--full", help="Also judge and render it again.")] = False,
) -> None:
    """Write finished results to data/release and their pages to reports/release, for a commit.

    Also pack the series of all runs into data/series-<hash>.zip, which is not committed. With
    --check compare every file of the existing release with its manifest instead, and with --full
    also judge its features and flows and render its pages again. End with code 2 if anything
    differs.

    Example: replicate release --check --full
    """
    if full and not check:
        raise InputError("--full: belongs to --check; give both, or neither to write a release")
    if full:
        from replication.report.release_check import check_fully

        print(check_fully(ROOT))
    elif check:
        from replication.report.manifest import check_release

        print(check_release(ROOT))
    else:
        from replication.report.render import make_release

        print(make_release(ROOT, data))


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
    compared = compare_results(old, new)
    print(*write_differences(compared, output, [*tiers, tier]), sep="\n")
    for item in compared:
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
    """Execute every notebook on the release, store its outputs, and write its page.

    The manifest of the release gets the checksums of the pages.
    """
    from replication.report.manifest import NOTEBOOK_PAGES, PROVENANCE, RELEASED, refresh_manifest
    from replication.report.notebooks.notebook import execute, to_html
    from replication.report.pages.page import ran

    whose = ran(read_json(ROOT / RELEASED / PROVENANCE)).whose
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        execute(path, path, {})
        to_html(path, ROOT / NOTEBOOK_PAGES / f"{path.stem}.html", whose)
        refresh_manifest(ROOT)
        print(path)


@app.command()
def course() -> None:
    """Write the notebooks for students, with checks instead of solutions, into reports/course.

    Also write the lecturer's page, from notebooks/README.md.
    """
    from replication.report.notebooks.course import write_course

    print(write_course(ROOT))


@app.command()
def engines(
    ns3_version: Ns3 = None,
    same: Annotated[
        bool,
        typer.Option("--same", help="Show that changed sources give the results of before."),
    ] = False,
    new: Annotated[
        bool,
        typer.Option("--new", help="Let the present sources begin a generation of results."),
    ] = False,
    engines: Annotated[
        str, typer.Option(help="Comma-separated engines, for --same and --new.")
    ] = "all",
) -> None:
    """List the engines with their versions, and the missing packages.

    After a change of an engine's sources, `--same` runs the canonical scenarios and one stored run
    of each kind. If all results are equal, the sources join the current generation, and no run is
    outdated. Otherwise all runs are made anew, and `--new` lists the sources as a new generation.

    Example: replicate engines --same --engines ns3
    """
    from replication.simulate.process import written_version

    config = load_config(CONFIG, _given(ns3_version=ns3_version))
    if same or new:
        for name in _engine_names(engines):
            _list_sources(config.engine(name), same=same)
        return
    for name in ENGINES:
        engine = config.engine(name)
        if packages := engine.missing(ROOT):
            print(f"{name}: not installed; missing {', '.join(packages)}: run `make engines`")
            continue
        fingerprint = engine.fingerprint(ROOT)
        program = ROOT / engine.program(ROOT, DATA)
        if program.is_file():
            written = engine.exact_version(written_version(program), fingerprint)
            print(f"{name}: built, {engine.listed_version(ROOT) or written}")
        elif engine.built(ROOT):
            print(f"{name}: installed, built when first used")
        else:
            print(f"{name}: not built: run `make engines`")
        if warning := package_warning(find_package(ROOT, name)):
            print(f"{name}: warning: {warning}")


def _list_sources(engine: Engine, *, same: bool) -> None:
    """Add an engine's sources to the current generation, or begin a new one."""
    from replication.compare.sameness import Sameness

    generation = engine.generation(ROOT)
    if generation is not None:
        print(f"{engine.name}: its sources belong to generation {generation.name} already")
        return
    program = ROOT / engine.program(ROOT, DATA)
    if not program.is_file():
        raise InputError(f"{engine.name}: is not built: run `make engines ENGINES={engine.name}`")
    sameness = Sameness(ROOT, DATA, engine)
    current = load_generation(ROOT, engine.name)
    if same and current is None:
        raise InputError(f"{engine.name}: has no generation yet: run `replicate engines --new`")
    if same and current is not None:
        generation = sameness.extended(current)
    else:
        generation = sameness.new_generation()
    write_generation(ROOT, engine.name, generation)
    print(
        f"{engine.name}: its sources belong to generation {generation.name} now; "
        f"commit {FOLDER}/{engine.name}.yaml"
    )


def _engine_names(text: str) -> list[str]:
    """Return the engines in a comma-separated text, or all; InputError for an unknown one."""
    names = list(ENGINES) if text in ("all", "available") else listed(text)
    check_known("engines", names, ENGINES)
    return names


@app.command(hidden=True)
def install_engines(
    engines: Annotated[str, typer.Option(help="Comma-separated engines.")] = "all",
) -> None:
    """Install the Debian packages that engines require, for `make engines`.

    Example: replicate install-engines --engines ns2
    """
    missing: set[str] = set()
    for name in _engine_names(engines):
        missing.update(ENGINES[name].missing(ROOT))
    packages = sorted(missing)
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
