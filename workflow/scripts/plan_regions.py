"""Check the regions against their studies, and say what they should cost."""

import sys
from pathlib import Path

from replication.cli.script import ROOT, job
from replication.explore.modern_kernel import forecast_modern
from replication.explore.regions.region_result import forecast

given = snakemake.params
with job(snakemake):
    pairs = [name.split("/") for name in given.regions]
    regions = [
        forecast(ROOT, name, engine, given.tier, given.ns3_version) for name, engine in pairs
    ]
    modern = [forecast_modern(ROOT, study, given.tier) for study in given.today]
    cpu_s = sum(cost_s for _, cost_s in (*regions, *modern))
    total = f"in all at most about {cpu_s / 60:.1f} CPU minutes, what is in the store included"
    lines = "".join(f"{line}\n" for line in (*(line for line, _ in (*regions, *modern)), total))
    Path(snakemake.output.forecast).write_text(lines, encoding="utf-8")
    sys.stderr.write(lines)
