"""Run those scenarios of a batch that are not in the store, and write the tables of all."""

from pathlib import Path

from replication.cli.script import ROOT, job
from replication.simulate.run import designed_batch, open_job, run_batch
from replication.simulate.runtime import Launch
from replication.simulate.store import Progress

given, made = snakemake.params, snakemake.output
with job(snakemake):
    _, scenarios = designed_batch(Path(snakemake.input.design), snakemake.wildcards.batch)
    batch = open_job(ROOT, Launch(**given.machine), scenarios)
    tables = Path(made.flows), Path(made.series)
    progress = Progress.load(Path(given.totals))
    run_batch(batch, given.fingerprint, given.listed_version, Path(made.usage), tables, progress)
