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

    listed = load_interventions(root)
    return sorted({intervention.study for intervention in listed if intervention.engine == engine})


def variation_runs(root: Path, engines: Collection[str], studies: Collection[str]) -> list[str]:
    """Return the studies to judge under named variations, as `variation_model.variation_runs`."""
    from replication.explore.variation_model import variation_runs

    return variation_runs(root, engines, studies)


def variation_engine(root: Path, variation: str) -> str:
    """Return the engine that runs a named variation."""
    from replication.explore.variation_model import load_variation

    return load_variation(root, variation).engine
