"""Compare published traces of congestion windows with the reproduced windows."""

from replication.cli.script import DATA, ROOT, job
from replication.compare.trace_comparison import compare_traces

with job(snakemake, "comparing the published traces"):
    print(compare_traces(ROOT, DATA, snakemake.params.studies))
