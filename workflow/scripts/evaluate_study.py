"""Judge a study's results: cells, claims, audit."""

from pathlib import Path

from replication.cli.script import DATA, ROOT, job
from replication.design.config import load_study
from replication.metrics.results import Results
from replication.verdicts.evaluate import evaluate_study

name, folder = snakemake.wildcards.study, Path(snakemake.output.verdicts).parent
with job(snakemake, f"judging {name}"):
    study = load_study(ROOT, name)
    published = Path(snakemake.input.published)
    evaluate_study(study, published, Results.load_each(DATA, name), folder)
