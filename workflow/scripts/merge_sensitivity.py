"""Write the tables of all studies' explanations."""

from replication.base.table import merge_tables
from replication.cli.script import DATA, job
from replication.explore.explained import EXPLANATIONS

given, folder = snakemake.params, DATA / "sensitivity"
with job(snakemake, "putting the explanations of the studies together"):
    merge_tables([folder / study for study in given.explained], EXPLANATIONS, DATA)
