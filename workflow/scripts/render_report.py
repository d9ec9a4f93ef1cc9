"""Render the report from the results and the executed notebooks."""

from pathlib import Path

from replication.cli.script import DATA, ROOT, job
from replication.design.config import Paths
from replication.report.render import render

# Processes that render pages may import this script.
if __name__ == "__main__":
    with job(snakemake, "rendering the report"):
        render(ROOT, DATA, Paths().executed, Path(snakemake.output.index).parent)
