"""Vary what a paper does not state, and judge its readings.

The store keeps runs, so that a restart continues.
"""

from pathlib import Path

from replication.cli.script import ROOT, job
from replication.explore.machine import Machine
from replication.explore.readings import judge_readings
from replication.explore.robustness import explore_study
from replication.simulate.runtime import Launch

with job(snakemake):
    folder = Path(snakemake.output.points).parent
    machine = Machine.open(ROOT, Launch(**snakemake.params.machine))
    explore_study(ROOT, snakemake.wildcards.study, folder, machine)
    judge_readings(ROOT, snakemake.wildcards.study, folder, machine)
