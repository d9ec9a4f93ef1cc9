"""The commands about what is to be run, and in which words: `replicate plan --help`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from replication.cli.option import HERE, Engines, Ns3, Root, Runtime, Studies, Tier, given

BatchCost = Annotated[
    float | None, typer.Option(help="CPU seconds of a job, instead of the tier's.")
]


def validate(studies: Studies = None, root: Root = HERE) -> None:
    """Check configuration, tiers, studies, published numbers and mappings; change nothing.

    Example: replicate validate --studies saxena
    """
    from replication.judge.cause import check_explanations, load_explanations
    from replication.plan.config import load_config, load_study, load_tier, study_ids
    from replication.plan.design import design_study
    from replication.plan.repeat import repeat_warnings
    from replication.plan.study_check import check_study
    from replication.sensitivity.maps.map_model import load_mapping, map_names
    from replication.sensitivity.maps.run_map import check_map
    from replication.sensitivity.modern_kernel import load_today, plan_today
    from replication.study.published import published_path
    from replication.study.sensitivity_settings import load_sensitivity
    from replication.study.study import ALL_STUDIES

    load_config(root / "configs" / "config.yaml")
    load_sensitivity(root)
    for path in sorted((root / "configs" / "tiers").glob("*.yaml")):
        load_tier(root, path.stem)
    everything = studies in (None, ALL_STUDIES)
    for name in study_ids(root) if everything else dict.fromkeys(str(studies).split(",")):
        study = load_study(root, name)
        runs = design_study(study, load_tier(root, "paper"), ["ns3"])
        published = published_path(root, name)
        cells = check_study(study, published)
        if (explanations := load_explanations(root, name)) is not None:
            check_explanations(explanations, study, cells)
        print(
            f"{name}: {len(study.experiments)} experiments, {len(runs)} runs in tier paper, "
            f"{len(cells)} cells of {len(study.tables)} tables, {len(study.claims)} claims: valid"
        )
        for warning in repeat_warnings(runs):
            print(f"warning: {name}, {warning}")
    load_mapping(root)
    for name in sorted(set(load_today(root).studies) & set(study_ids(root))) if everything else []:
        print(f"{plan_today(root, name, 'paper')}: valid")
    for name in map_names(root) if everything else []:
        print(f"{name}: {check_map(root, name)}: valid")


def new_study(
    study: Annotated[str, typer.Option("--id", prompt="Id (the file's name, like smith_2004)")],
    title: Annotated[str, typer.Option(prompt="Title")],
    kind: Annotated[
        str | None, typer.Option("--type", help="Type of its first experiment; asked for.")
    ] = None,
    root: Root = HERE,
) -> None:
    """Write a valid, commented study and its published numbers, to be filled in.

    Example: replicate new-study --id smith_2004 --title "Reno and RED" --type queuing
    """
    from replication.plan.new_study import new_study as write_new_study
    from replication.plan.new_study import study_types

    if kind is None:
        kind = typer.prompt(f"Type of its first experiment ({', '.join(study_types())})")
    for path in write_new_study(root, study, title, kind):
        print(path)
    print(f"next: fill them in, then `replicate validate` and `make report STUDIES={study}`")


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

    settings = given(
        tier=tier,
        studies=studies,
        engines=engines,
        ns3_version=ns3,
        batch_cost_s=batch_cost_s,
        runtime=runtime,
    )
    for line in Pipeline.load(root, settings).summary():
        print(line)


def metrics() -> None:
    """List the metrics that cells and claims can use, with units and definitions.

    Example: replicate metrics
    """
    from replication.measure.metric_model import METRICS

    for name, metric in METRICS.items():
        print(f"{name} [{metric.unit}]: {metric.description}")


def schemas(out: Annotated[Path | None, typer.Argument()] = None, root: Root = HERE) -> None:
    """Write the JSON schemas of all files in configs into OUT; without OUT the committed one.

    Example: replicate schemas /tmp/schemas
    """
    from replication.cli.schema import write_schemas

    for path in write_schemas(root / "configs", out):
        print(path)
