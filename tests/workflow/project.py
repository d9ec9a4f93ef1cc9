"""A copy of the project in a temporary folder, and Snakemake run inside it."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
COPIED = (
    *("Snakefile", "workflow", "configs", "notebooks", "data/published", "data/README.md"),
    # What images are called depends on these.
    *("containers", "LICENSE", "requirements.lock"),
)


@dataclass(frozen=True)
class Project:
    """A copy of the project."""

    root: Path

    def environment(self):
        """Return variables under which `replicate` is the copy's own code."""
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
        done = subprocess.run(
            self.command(*targets, **options),
            cwd=self.root,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, done.stdout[-4000:]
        return done

    def jobs(self, *targets, **options):
        """Return how often each rule would run."""
        lines = self.snakemake(*targets, dry=True, **options).stdout.splitlines()
        if any("Nothing to be done" in line for line in lines):
            return {}
        start = next(i for i, line in enumerate(lines) if line.startswith("Job stats"))
        counts = {}
        for line in lines[start + 3 :]:
            words = line.split()
            if len(words) != 2:
                break
            counts[words[0]] = int(words[1])
        counts.pop("total")
        return counts

    def edit(self, path, old, new):
        """Replace the one occurrence of `old` in a file of the copy."""
        file = self.root / path
        text = file.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{path}: {old!r} occurs {text.count(old)} times"
        file.write_text(text.replace(old, new), encoding="utf-8")

    def adopt_engines(self, root):
        """Copy the engines that another copy, or the checkout itself, has compiled."""
        engines = "data/reproduced/engines"
        shutil.copytree(root / engines, self.root / engines, symlinks=True)


def copy_project(target, engines_from=None):
    """Copy the sources, and with `engines_from` that copy's compiled engines."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__", "*.egg-info", ".ipynb_checkpoints")
            shutil.copytree(source, target / name, ignore=ignore)
        else:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    # Built kernels take minutes and do not depend on the copy.
    (target / ".cache").symlink_to(ROOT / ".cache")
    project = Project(target)
    if engines_from is not None:
        project.adopt_engines(engines_from)
    return project
