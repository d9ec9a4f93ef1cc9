"""Rebuild the experiments of published TCP studies and compare them with the published results.

    configs, published numbers -> design -> simulate -> evaluate -> notebooks -> report

Run by `make report`, or `snakemake --cores all` inside the environment. Settings are in
configs/config.yaml; `--config tier=quick studies=saxena` overrides them.
"""

import logging
import re
import sys
from functools import partial
from pathlib import Path

REPO = Path(workflow.basedir)
# Snakemake would import it, for half a second, in case that a parameter is a table.
sys.modules.setdefault("pandas", None)
# Run the code of this folder, whichever environment is active.
sys.path.insert(0, str(REPO / "workflow"))
from replication.base.environment import enter_workflow
from replication.base.lifetime import SHELL_PREFIX, handle_signals, remove_leftovers
from replication.base.errors import exit_with_error

with exit_with_error():
    enter_workflow(REPO)

from replication.engines.catalogue import (
    ENGINES,
    ask_early,
    chosen_engine,
    linux_cache,
)

ask_early(REPO)
from replication.engines.ns3 import WHEEL_VERSIONS, wheel_hash
from replication.simulate.runtime import image_file
from replication.simulate.store import write_totals
from replication.design.input_hashes import (
    content_hash,
    rule_code,
    study_hash,
    study_inputs,
    value_hash,
)
from replication.design.notebook_names import (
    LECTURES,
    START_HERE,
    studies_of_lecture,
)
from replication.design.pipeline import Pipeline
from replication.explore import rule_inputs


configfile: "configs/config.yaml"


shell.prefix(SHELL_PREFIX)


# Under --quiet, as in make, show only Snakemake's warnings and errors and our own lines.
if workflow.output_settings and workflow.output_settings.quiet:
    logging.getLogger("snakemake.logging").setLevel(logging.WARNING)
with exit_with_error():
    PIPE = Pipeline.load(REPO, config, workflow.deployment_settings.deployment_method)
PATHS, PLAN, START = PIPE.paths, PIPE.plan, PIPE.start
# A rule's parameter that reruns it when its code changes.
code_of = partial(rule_code, REPO)


# `snakemake --sdm apptainer` runs every rule in this image, whose name takes a shell to find.
if START.inside is not None:

    container: image_file(REPO)


wildcard_constraints:
    study="|".join(map(re.escape, PIPE.studies)),
    batch="[a-z0-9]+-(heavy|light)-[0-9a-f]+",
    kind="[a-z_]+",
    lecture="|".join(LECTURES),
    engine="[a-z0-9]+",


include: "workflow/rules/engines.smk"
include: "workflow/rules/simulate.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/sensitivity.smk"
include: "workflow/rules/regions.smk"
include: "workflow/rules/interventions.smk"


rule all:
    default_target: True
    input:
        rules.render_report.output,
        # Snakemake restores a missing file only if it is requested, not if only files made from it are.
        rules.render_report.input,
        rules.write_provenance.input,
        expand(rules.simulate_batch.output, batch=PLAN.batches),
    localrule: True


rule engines:
    input:
        [START.program_of(engine) for engine in PIPE.engines],
    localrule: True


onstart:
    # Here, because Snakemake sets its own handlers when it has its jobs.
    handle_signals()
    remove_leftovers(REPO)
    # Only the report has a plan: sensitivity analysis, regions and interventions have runs of their own, engines none.
    if not {"engines", "explain", "regions", "interventions"} & set(
        workflow.dag_settings.targets
    ):
        write_totals(PATHS.totals, PLAN.totals(PIPE.stores, *PIPE.studies))
        for line in PIPE.summary():
            print(line, file=sys.stderr)
