"""Search why a study's numbers differ; runs go to the store, so that a second start goes on."""

from pathlib import Path

from replication.cli.script import ROOT, job, start
from replication.explore.explanation import explain_study
from replication.explore.machine import Machine

with job(snakemake):
    folder = Path(snakemake.output.explanation).parent
    given = snakemake.params.machine
    machine = Machine.open(ROOT, *start(given))
    explain_study(ROOT, snakemake.wildcards.study, folder, machine)
