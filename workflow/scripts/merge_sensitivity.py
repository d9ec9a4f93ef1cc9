"""Put the studies' tables and explanations together."""

from replication.cli.script import DATA, job
from replication.explore.explanation import EXPLANATIONS
from replication.explore.robustness import TABLES
from replication.study.storage.table import merge_tables

given, folder = snakemake.params, DATA / "sensitivity"
with job(snakemake, "putting the sensitivity of the studies together"):
    merge_tables([folder / study for study in given.studies], TABLES, folder)
    merge_tables([folder / study for study in given.explained], EXPLANATIONS, DATA)
