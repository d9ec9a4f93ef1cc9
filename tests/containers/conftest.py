"""The images of this checkout, in the user's own podman with the user's own settings.

REPLICATION_CONTAINER_ENGINES names the simulators to compare.
"""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGINES = os.environ.get("REPLICATION_CONTAINER_ENGINES", "ns3,ns2,linux").split(",")


@pytest.fixture(scope="session")
def podman():
    """Build base and images with podman, if need be."""
    images = [*ENGINES, "analysis"] if len(ENGINES) == 3 else ENGINES
    base = ["podman", "image", "exists", "localhost/replicate-base:bookworm"]
    if subprocess.run(base, check=False).returncode != 0:
        subprocess.run([ROOT / "containers" / "base", "podman"], check=True)
    subprocess.run([ROOT / "containers" / "build", "podman", *images], check=True)
