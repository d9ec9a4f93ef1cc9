"""What the rules of regions and interventions depend on.

Models are imported late: no other target needs them.
"""

from collections.abc import Collection
from pathlib import Path


def region_runs(root: Path, engines: Collection[str], studies: Collection[str]) -> list[str]:
    """Return the regions to explore, as `region_model.region_runs`."""
    from replication.explore.regions.region_model import region_runs

    return region_runs(root, engines, studies)


def region_study(root: Path, region: str) -> str:
    """Return the study of a region."""
    from replication.explore.regions.region_model import load_region

    return load_region(root, region).study


def intervention_studies(root: Path, engine: str) -> list[str]:
    """Return the studies whose points the interventions on an engine run."""
    from replication.study.intervention import load_interventions

    return sorted({one.study for one in load_interventions(root) if one.engine == engine})


def modern_studies(root: Path, studies: Collection[str], engines: Collection[str]) -> list[str]:
    """Return the studies to judge on a modern kernel, as `modern_model.modern_studies`."""
    from replication.explore.modern_model import modern_studies

    return modern_studies(root, studies, engines)


def modern_engine(root: Path) -> str:
    """Return the engine with the modern kernel."""
    from replication.explore.modern_model import load_modern

    return load_modern(root).engine
