"""The command line: `replicate --help`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from replication.cli import run as cli_run
from replication.cli.option import DATA, HERE, Data, Root
from replication.cli.sensitivity import app as sensitivity_app
from replication.plan.home import require_home
from replication.study.errors import InputError, RunError, describe_refusal

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Rebuild the experiments of published TCP studies and compare the numbers.",
)

app.add_typer(sensitivity_app, name="sensitivity")
for command in (cli_run.simulate, cli_run.conformance, cli_run.run):
    app.command()(command)

Tier = Annotated[str | None, typer.Option(help="quick, paper or deep.")]
Studies = Annotated[str | None, typer.Option(help="Comma-separated study ids, or all.")]
Engines = Annotated[str | None, typer.Option(help="Comma-separated engines.")]
Ns3 = Annotated[str | None, typer.Option("--ns3-version", help="Version of engine ns3.")]
BatchCost = Annotated[
    float | None, typer.Option(help="CPU seconds of a job, instead of the tier's.")
]
Runtime = Annotated[
    str | None, typer.Option(help="native, docker, podman, apptainer or charliecloud.")
]


def _overrides(
    tier: str | None = None,
    studies: str | None = None,
    engines: str | None = None,
    ns3_version: str | None = None,
    batch_cost_s: float | None = None,
    runtime: str | None = None,
) -> dict[str, Any]:
    """Return the settings that the command line gives, to be laid over the configuration."""
    return {key: value for key, value in locals().items() if value is not None}


@app.command()
def validate(root: Root = HERE) -> None:
    """Check configuration, tiers, studies, published numbers and mappings; change nothing.

    Example: replicate validate
    """
    from replication.compare.conformance_model import load_conformance
    from replication.judge.hypothesis import load_hypotheses
    from replication.plan.config import load_config, load_study, load_tier, study_ids
    from replication.plan.design import design_study
    from replication.plan.study_check import check_study
    from replication.sensitivity.verdict_point import Judge
    from replication.study.sensitivity_settings import load_sensitivity

    load_config(root / "configs" / "config.yaml")
    load_conformance(root)
    hypotheses = load_hypotheses(root)
    load_sensitivity(root)
    for path in sorted((root / "configs" / "tiers").glob("*.yaml")):
        load_tier(root, path.stem)
    for name in study_ids(root):
        study = load_study(root, name)
        runs = design_study(study, load_tier(root, "paper"), ["ns3"])
        published = root / "data" / "published" / f"{name}.csv"
        cells = check_study(study, published)
        Judge.of(study, published, hypotheses.of(name))
        print(
            f"{name}: {len(study.experiments)} experiments, {len(runs)} runs in tier paper, "
            f"{len(cells)} cells of {len(study.tables)} tables, {len(study.claims)} claims: valid"
        )


@app.command()
def plan(
    tier: Tier = None,
    studies: Studies = None,
    engines: Engines = None,
    ns3: Ns3 = None,
    batch_cost_s: BatchCost = None,
    runtime: Runtime = None,
    root: Root = HERE,
) -> None:
    """Say what would run, how many scenarios, and the expected cost; change nothing.

    Example: replicate plan --tier quick --studies saxena,nishitha
    """
    from replication.plan.pipeline import Pipeline

    overrides = _overrides(tier, studies, engines, ns3, batch_cost_s, runtime)
    for line in Pipeline.load(root, overrides).summary():
        print(line)


@app.command()
def metrics() -> None:
    """List the metrics that cells and claims can use, with units and definitions."""
    from replication.measure.metric_model import METRICS

    for name, metric in METRICS.items():
        print(f"{name} [{metric.unit}]: {metric.description}")


@app.command()
def schemas(root: Root = HERE) -> None:
    """Write configs/schemas and the tables of keys in configs/README.md from the typed models."""
    from replication.cli.schema import write_schemas

    for path in write_schemas(root / "configs"):
        print(path)


@app.command()
def design(
    study: str,
    tier: Tier = None,
    engines: Engines = None,
    ns3: Ns3 = None,
    batch_cost_s: BatchCost = None,
    runtime: Runtime = None,
    root: Root = HERE,
    data: Data = DATA,
) -> None:
    """Write the design, scenarios and batches of one study.

    Example: replicate design saxena --tier quick
    """
    from replication.plan.design import write_design
    from replication.plan.pipeline import Pipeline

    overrides = _overrides(tier, study, engines, ns3, batch_cost_s, runtime)
    pipeline = Pipeline.load(root, overrides)
    write_design(pipeline.plan, study, data / "design")


@app.command()
def program(
    engine: Annotated[str, typer.Argument(help="An engine's name.")],
    ns3: Ns3 = None,
    root: Root = HERE,
) -> None:
    """Print where an engine's program is, once `make engines` has built it."""
    from replication.plan.pipeline import Pipeline

    pipeline = Pipeline.load(root, _overrides(engines=engine, ns3_version=ns3))
    print((root / pipeline.program(engine)).resolve())


@app.command()
def engines(root: Root = HERE) -> None:
    """List the engines: which are there, in which version, and what the others lack.

    Example: replicate engines
    """
    from replication.plan.provision import state

    for line in state(root):
        print(line)


@app.command("install-engines")
def install_engines(
    engines: Annotated[str, typer.Option(help="Comma-separated engines.")] = "all",
    root: Root = HERE,
) -> None:
    """Install what the engines need from Debian; `make engines` then builds them.

    Example: replicate install-engines --engines ns2
    """
    from replication.plan.config import listed
    from replication.plan.provision import provide

    names = None if engines in ("all", "available") else listed(engines)
    for line in provide(root, names):
        print(line, flush=True)


@app.command()
def seal(
    folder: Annotated[Path, typer.Argument(help="Folder of a program that was just built.")],
) -> None:
    """Write the hashes of all files of a folder into it: a damaged one is not run, nor read.

    Example: replicate seal data/reproduced/engines/ns2-f294f60d-2.35
    """
    from replication.study.seal import seal as write_seal

    write_seal(folder)


@app.command("check-kernels")
def check_kernels(
    cache: Annotated[Path, typer.Argument(help="Folder of built kernels.")],
) -> None:
    """Remove damaged kernels from their cache, to be built anew, and seal new ones.

    Example: replicate check-kernels .cache/linux
    """
    from replication.study.seal import check_kernels as check

    for line in check(cache):
        print(line, file=sys.stderr)


@app.command("fetch-wheel")
def fetch_wheel(
    lock: Annotated[Path, typer.Option(help="File that pins the wheel by hash.")],
    output: Annotated[Path, typer.Option(help="Folder to unpack to.")],
) -> None:
    """Fetch the pinned ns-3 wheel and unpack its headers and libraries."""
    from replication.engines.wheel import fetch_wheel as fetch

    fetch(lock, output)


@app.command()
def collect(
    output: Annotated[Path, typer.Option(help="Parquet file to write.")],
    keys: Annotated[str, typer.Option(help="Comma-separated columns to sort by.")],
    parts: Annotated[list[Path], typer.Argument(help="Parquet files of batches.")],
) -> None:
    """Put the tables of batches together."""
    from replication.run.gather import collect as collect_parts

    collect_parts(parts, output, keys.split(","))


@app.command("merge-conformance")
def merge_conformance(engines: list[str], root: Root = HERE, data: Data = DATA) -> None:
    """Put the engines' conformance together and hold their loss recoveries side by side."""
    from replication.compare.conformance import merge_conformance as merge_engines
    from replication.compare.conformance_model import load_conformance

    merge_engines(load_conformance(root), engines, data)


@app.command()
def evaluate(study: str, root: Root = HERE, data: Data = DATA) -> None:
    """Judge one study's results: cells, claims, audit.

    Example: replicate evaluate nishitha
    """
    from replication.judge.evaluate import evaluate_study
    from replication.judge.registration import register
    from replication.measure.results import Results
    from replication.plan.config import load_study

    published = root / "data" / "published" / f"{study}.csv"
    results = Results.load(data, study)
    document = load_study(root, study)
    evaluate_study(document, published, results, data / "evaluation" / study)
    register(root, data, document)


@app.command()
def merge(studies: list[str], data: Data = DATA) -> None:
    """Put the studies' cells, claims and audits together."""
    from replication.judge.evaluate import merge as merge_evaluations

    merge_evaluations([data / "evaluation" / study for study in studies], data)


@app.command("compare-traces")
def compare_traces(
    studies: Annotated[list[str], typer.Argument(help="Ids of studies with published traces.")],
    root: Root = HERE,
    data: Data = DATA,
    traces: Annotated[
        Path | None,
        typer.Option(
            help="Folder of <study>/*.sender-ss.csv; default REPLICATION_TRACES, else "
            "../shared/traces. Without it the committed summary figures are compared alone."
        ),
    ] = None,
) -> None:
    """Compare published congestion-window traces with the reproduced windows, as numbers.

    Example: replicate compare-traces kapadia
    """
    from replication.compare.trace_comparison import compare_traces as compare

    print(compare(root, data, studies, traces))


@app.command()
def agreement(studies: list[str], root: Root = HERE, data: Data = DATA) -> None:
    """Compare the engines' verdicts and, where they differ, what they measured.

    Example: replicate agreement nishitha kapadia
    """
    from replication.compare.agreement_table import write_agreement

    write_agreement(root, data, studies)


@app.command()
def ladder(
    versions: Annotated[list[str], typer.Argument(help="The versions of ns-3 that were run.")],
    root: Root = HERE,
    data: Data = DATA,
) -> None:
    """Compare the versions of ns-3 that `make ladder` ran, and say what changed.

    Example: replicate ladder 3.39.post2 3.44.post0
    """
    from replication.compare.ladder import summarise, write_ladder

    for found in summarise(write_ladder(root, data, versions)):
        print(found.sentence())


@app.command()
def provenance(
    tables: Annotated[list[Path], typer.Argument(help="The results that it tells of.")],
    output: Annotated[Path, typer.Option()],
    tier: Tier = None,
    studies: Studies = None,
    engines: Engines = None,
    ns3: Ns3 = None,
    batch_cost_s: BatchCost = None,
    runtime: Runtime = None,
    root: Root = HERE,
) -> None:
    """Write what ran: hashes, versions, platform, wall and CPU time of each stage."""
    from replication.plan.pipeline import Pipeline
    from replication.report.provenance import write_provenance

    overrides = _overrides(tier, studies, engines, ns3, batch_cost_s, runtime)
    write_provenance(Pipeline.load(root, overrides), output, tables)


@app.command()
def notebook(
    name: Annotated[Path, typer.Argument(help="The notebook.")],
    output: Annotated[Path, typer.Option()],
    study: Annotated[str, typer.Option()],
    root: Root = HERE,
    data: Data = DATA,
) -> None:
    """Execute a notebook on the results of a study."""
    from replication.plan.notebook_kind import made_from
    from replication.report.notebooks.notebook import execute

    parameters = {"study": study, "data": str(data.resolve()), "root": str(root.resolve())}
    execute(name, output, parameters, made_from(root, data, study, name.stem))


@app.command()
def render(
    root: Root = HERE,
    data: Data = DATA,
    notebooks: Annotated[Path, typer.Option(help="Executed notebooks.")] = Path(
        "reports/notebooks"
    ),
    output: Annotated[Path | None, typer.Option(help="Default: reports/html.")] = None,
) -> None:
    """Render the HTML report from existing results; nothing is simulated.

    Where there are none, the released ones are rendered, into reports/html-release.
    """
    from replication.plan.origin import require_sources, require_tables
    from replication.report.parts.source import read_provenance
    from replication.report.release import RENDERED_TO, released_results
    from replication.report.render import DOWNLOADS
    from replication.report.render import render as render_report

    if data == DATA and not output and not any((data / name).is_file() for name in DOWNLOADS):
        with released_results(root) as released:
            render_report(root, released, released / "no notebooks", RENDERED_TO)
        print(f"{RENDERED_TO}/index.html: the released results; `make report` makes your own")
        return
    if data != DATA and not output:
        raise InputError(f"--output: is needed, as reports/html is not for the pages of {data}")
    provenance = read_provenance(data / "provenance.json")
    require_tables(data, provenance)
    require_sources(root, data, provenance)
    render_report(root, data, notebooks, output or Path("reports/html"))


@app.command()
def release(
    root: Root = HERE,
    data: Data = DATA,
    check: Annotated[bool, typer.Option("--check", help="Only say whether it is current.")] = False,
) -> None:
    """Render finished results into reports/release, to be committed.

    With --check: verify the one that is there, judge its results again, and end with code 2 if
    anything is not what was made, or was made from other versions than those that are here.

    Example: replicate release --check
    """
    from replication.report.release import check_release, make_release

    print(check_release(root) if check else make_release(root, data))


@app.command()
def fixture(
    root: Root = HERE,
    data: Annotated[Path, typer.Option(help="Results of a quick run of every study.")] = DATA,
) -> None:
    """Cut the notebooks' small data set from a quick run, and refresh their outputs.

    Example: make report TIER=quick && replicate fixture
    """
    from replication.plan.config import study_ids
    from replication.report.notebooks.fixture import make_fixture, refresh_notebooks

    size = make_fixture(root, data, root / "notebooks" / "fixture", study_ids(root))
    print(f"notebooks/fixture: {size / 1e6:.1f} MB")
    for path in refresh_notebooks(root / "notebooks"):
        print(path)


def main() -> None:
    """Run `replicate`."""
    run_command_line(app)


def run_command_line(app: typer.Typer) -> None:
    """Run a command line; bad input is one line and exit code 2, a failed run exit code 1."""
    try:
        require_home(Path())
        app()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except RunError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except (OSError, MemoryError) as error:
        line = describe_refusal(error)
        if line is None:
            raise
        print(f"error: {line}", file=sys.stderr)
        sys.exit(1)
