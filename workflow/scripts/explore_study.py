"""Vary what a paper does not state; the store keeps runs, so that a restart continues."""

from pathlib import Path

from replication.cli.script import ROOT, job, start
from replication.explore.design_point import explore_study
from replication.explore.machine import Machine

with job(snakemake):
    folder = Path(snakemake.output.points).parent
    given = snakemake.params.machine
    machine = Machine.open(ROOT, *start(given))
    explore_study(ROOT, snakemake.wildcards.study, folder, machine)
