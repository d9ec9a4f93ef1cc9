"""A copy of the project in a temporary folder, and Snakemake run inside it."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from replication.metrics.trace_source import fetch_traces
from replication.simulate.store import Store

ROOT = Path(__file__).parents[2]
#: The published traces, where a machine has them next to the project.
TRACES = ROOT.parent / "shared" / "traces"
COPIED = (
    "Snakefile",
    "profiles",
    "workflow",
    "configs",
    "notebooks",
    "data/published",
    "data/README.md",
    "data/conformance.csv",
    "data/engine_differences.csv",
    "data/interventions.csv",
    "data/bbr_shares.csv",
    "data/textbook.csv",
    # Names of images depend on these.
    "containers",
    "LICENSE",
    "requirements.lock",
    "requirements-dev.lock",
)
BUILT = "data/reproduced/engines"
BUILDERS = (
    "fetch_ns3_wheel",
    "unpack_ns3_wheel",
    "build_ns3_program",
    "build_ns2_program",
    "build_linux_program",
)
#: What `make report ENGINES=ns3,ns2,linux TIER=quick` runs.
QUICK = {"tier": "quick", "engines": "ns3,ns2,linux"}
#: A tier of tests, with short runs in many batches.
BRIEF = """\
id: brief
title: a few short runs
replicates: [{count: 1}]
levels: quick
cost_limit_s: 0.1
batch_cost_s: 0.7
"""


@dataclass(frozen=True)
class Project:
    """A copy of the project."""

    root: Path

    def environment(self):
        """Return variables with which `replicate` runs the copy's code."""
        tools = str(Path(sys.executable).parent)
        return os.environ | {
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(self.root / "workflow"),
        }

    def command(self, *targets, cores=2, dry=False, options=(), **config):
        """Return the Snakemake command line."""
        words = ["snakemake", "--cores", str(cores), "--rerun-incomplete", *options]
        words += ["--dry-run"] if dry else []
        config = {"engines": "ns3"} | config
        words += ["--config", *(f"{key}={value}" for key, value in config.items())]
        return [*words, "--", *targets]

    def snakemake(self, *targets, check=True, **options):
        """Run Snakemake to its end; return the finished process with its output."""
        done = self._run(self.command(*targets, **options), stderr=subprocess.STDOUT)
        assert not check or done.returncode == 0, done.stdout[-4000:]
        return done

    def replicate(self, *words):
        """Return the output of the copy's `replicate`."""
        return self._run(["replicate", *words], check=True).stdout

    def _run(self, words, **options):
        options = {"stdout": subprocess.PIPE, "text": True, "check": False} | options
        return subprocess.run(words, cwd=self.root, env=self.environment(), **options)

    def jobs(self, *targets, **options):
        """Return how often each rule would run."""
        return jobs_in(self.snakemake(*targets, dry=True, **options).stdout)

    def edit(self, path, old, new):
        """Replace the one occurrence of `old` in a file of the copy."""
        file = self.root / path
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{path}: {old!r} occurs {text.count(old)} times"
        file.write_text(text.replace(old, new), encoding="utf-8")

    @property
    def stores(self):
        """The stores of finished runs, by engine."""
        folders = (self.root / "data/reproduced/store").glob("*")
        names = ((folder.name.split("-")[0], folder) for folder in folders)
        return {name: Store(folder, name) for name, folder in names}

    def finished_runs(self):
        """Return the usage of finished runs by engine and scenario; a rerun has a different one."""
        usages = {}
        for engine, store in self.stores.items():
            for scenario in store.finished():
                usages[engine, scenario] = store.usage(scenario)
        return {key: usage for key, usage in usages.items() if usage is not None}

    def adopt_engines(self, root):
        """Copy the engines compiled in another copy or in the checkout."""
        if (root / BUILT).is_dir():
            shutil.copytree(root / BUILT, self.root / BUILT)

    def adopt_results(self, root):
        """Copy the results of a finished run, without its engines."""
        for name in ("data/reproduced", "reports/notebooks", "reports/html"):
            shutil.copytree(root / name, self.root / name, dirs_exist_ok=True)
        records = root / ".snakemake/metadata"
        for path in filter(Path.is_file, records.rglob("*")):
            # The build records of an engine name its folder.
            if json.loads(path.read_bytes())["rule"] not in BUILDERS:
                target = self.root / path.relative_to(root)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target)


def jobs_in(output):
    """Return how often each rule runs, by what Snakemake says before it starts."""
    table = output.partition("Job stats")[2].partition("\n\n")[0]
    counts = dict(re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE))
    return {rule: int(count) for rule, count in counts.items() if rule != "total"}


def copy_project(target, engines_from=None):
    """Copy the sources, and with `engines_from` the engines compiled there, if any."""
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info", ".ipynb_checkpoints")
    for name in COPIED:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=ignore)
        else:
            shutil.copy2(ROOT / name, target / name)
    # Built kernels take minutes and do not depend on the copy.
    (target / ".cache").symlink_to(ROOT / ".cache")
    if TRACES.is_dir():
        fetch_traces(target, TRACES)
    project = Project(target)
    if engines_from is not None:
        project.adopt_engines(engines_from)
    return project


def brief_project(target, engines_from=ROOT):
    """Return a copy of the project with the tier brief, and engines if built."""
    project = copy_project(target, engines_from)
    (target / "configs/tiers/brief.yaml").write_text(BRIEF)
    return project


def finished_project(target):
    """Return a copy of the project in which all of `QUICK` has run.

    REPLICATION_FINISHED names a finished project to copy; otherwise it runs here.
    """
    finished = Path(os.environ.get("REPLICATION_FINISHED", ROOT)).resolve()
    project = copy_project(target, engines_from=finished)
    if "REPLICATION_FINISHED" in os.environ:
        project.adopt_results(finished)
    else:
        project.snakemake("all", **QUICK)
    return project


if __name__ == "__main__":
    finished_project(Path(sys.argv[1]))
