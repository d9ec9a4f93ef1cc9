"""Rebuild the experiments of published TCP studies and set them beside the published numbers.

    configs, published numbers -> design -> simulate -> evaluate -> notebooks -> report

Run by `make report`, or `snakemake --cores all` inside the environment. Settings are in
configs/config.yaml; `--config tier=quick studies=saxena` lays others over them.
"""

import re
import sys
from pathlib import Path


# First: what is imported next has to be this folder's own.
include: "workflow/rules/home.smk"


from replication.engines.catalogue import ENGINES, chosen_engine, linux_cache
from replication.study.files import sha256_of
from replication.run.inside import image_file
from replication.compare.ladder import Ladder
from replication.engines.ns3_version import NS3_VERSIONS, SYSTEM_PREFIX, SYSTEM_VERSION
from replication.plan.pipeline import load_or_exit
from replication.study.seal import NAME as SEAL
from replication.study.seal import whole_or_unsealed


configfile: "configs/config.yaml"


report: "workflow/report/workflow.rst"


REPO = Path(workflow.basedir)
PIPE = load_or_exit(REPO, config, workflow.deployment_settings.deployment_method)
PATHS = PIPE.paths


# Heeded by `snakemake --sdm apptainer` alone: every rule then runs in this image.
container: image_file(REPO)


wildcard_constraints:
    study="|".join(map(re.escape, PIPE.studies)),
    batch="[a-z0-9]+-(heavy|light)-[0-9a-f]+",
    kind="[a-z_]+",
    engine="[a-z0-9]+",


include: "workflow/rules/engines.smk"
include: "workflow/rules/design.smk"
include: "workflow/rules/simulate.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/agreement.smk"
include: "workflow/rules/traces.smk"
include: "workflow/rules/conformance.smk"
include: "workflow/rules/notebooks.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/ladder.smk"
include: "workflow/rules/sensitivity.smk"


# All but the batches of simulations: seconds each, and what they need (a compiler, the network,
# git) the nodes of a cluster may not have.
localrules:
    all,
    engines,
    fetch_ns3_wheel,
    build_ns3_program,
    build_ns2_program,
    build_linux_program,
    design_study,
    collect_results,
    evaluate_study,
    merge_evaluations,
    compare_traces,
    compare_engines,
    run_conformance,
    merge_conformance,
    execute_notebook,
    write_provenance,
    render_report,
    ladder,
    design_rung,
    collect_rung,
    evaluate_rung,
    compare_versions,
    design_sensitivity,
    plan_sensitivity,
    judge_sensitivity,
    measure_sensitivity,
    merge_sensitivity,
    execute_sensitivity_notebook,


rule all:
    default_target: True
    input:
        rules.render_report.output,
        # A file that is gone is made again only if it is asked for, not for what was made from it.
        rules.render_report.input,
        rules.write_provenance.input,
        expand(rules.simulate_batch.output, batch=PIPE.batches),
        expand(rules.run_conformance.output, engine=PIPE.engines),


rule engines:
    input:
        PIPE.native_programs,


onstart:
    # The sensitivity analysis has a plan and a goal of its own.
    if "sensitivity" not in workflow.dag_settings.targets:
        what = LADDER() if "ladder" in workflow.dag_settings.targets else PIPE
        what.write_goal()
        for line in what.summary():
            print(line, file=sys.stderr)
