"""Check the maps against their studies, and say what they should cost."""

import sys
from pathlib import Path

from replication.cli.script import ROOT, job
from replication.explore.maps.region_result import forecast
from replication.explore.modern_kernel import forecast_modern

given = snakemake.params
with job(snakemake):
    pairs = [name.split("/") for name in given.maps]
    maps = [forecast(ROOT, name, engine, given.tier, given.ns3_version) for name, engine in pairs]
    modern = [forecast_modern(ROOT, study, given.tier) for study in given.today]
    cpu_s = sum(cost_s for _, cost_s in (*maps, *modern))
    total = f"in all at most about {cpu_s / 60:.1f} CPU minutes, what is in the store included"
    lines = "".join(f"{line}\n" for line in (*(line for line, _ in (*maps, *modern)), total))
    Path(snakemake.output.forecast).write_text(lines, encoding="utf-8")
    sys.stderr.write(lines)
