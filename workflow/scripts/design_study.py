"""Write the design and the scenarios of a study."""

from replication.cli.script import DATA, ROOT, job
from replication.design.config import load_study, load_tier
from replication.design.design import batch_runs, design_study, write_design

study, chosen = snakemake.wildcards.study, snakemake.params.selection
with job(snakemake, f"designing {study}"):
    tier, named = load_tier(ROOT, chosen["tier"]), chosen["named"]
    runs = design_study(load_study(ROOT, study), tier, list(named), chosen["ns3_version"])
    write_design(runs, batch_runs(runs, named, chosen["batch_cost_s"]), study, DATA / "design")
