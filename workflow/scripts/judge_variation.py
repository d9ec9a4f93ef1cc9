"""Judge a study's claims under a named variation, such as on a modern kernel."""

from pathlib import Path

from replication.cli.script import ROOT, job
from replication.explore.machine import Machine
from replication.explore.named_variation import judge_variation
from replication.simulate.runtime import Launch

given, folder = snakemake.params, Path(snakemake.output.claims).parent
variation, study = snakemake.wildcards.variation, snakemake.wildcards.study
with job(snakemake):
    machine = Machine.open(ROOT, Launch(**given.machine))
    judge_variation(ROOT, variation, study, given.tier, folder, machine)
