"""Write the design and the scenarios of a study."""

from replication.cli.script import DATA, ROOT, job
from replication.design.config import load_study, load_tier
from replication.design.design import batch_runs, design_study, write_design

name, given = snakemake.wildcards.study, snakemake.params
with job(snakemake, f"designing {name}"):
    study = load_study(ROOT, name)
    tier = load_tier(ROOT, given.tier)
    runs = design_study(study, tier, list(given.named), given.ns3_version)
    write_design(runs, batch_runs(runs, given.named, given.batch_cost_s), name, DATA / "design")
