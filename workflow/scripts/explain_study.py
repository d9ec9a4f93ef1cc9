"""Search why a study's numbers differ; the store keeps runs, so that a restart continues."""

from pathlib import Path

from replication.cli.script import ROOT, job, start
from replication.explore.explanation import explain_study
from replication.explore.machine import Machine

with job(snakemake):
    folder = Path(snakemake.output.explanation).parent
    given = snakemake.params.machine
    machine = Machine.open(ROOT, *start(given))
    explain_study(ROOT, snakemake.wildcards.study, folder, machine)
