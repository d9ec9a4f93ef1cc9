"""The locked Python packages: what they ask of the Python that they are installed in."""

from importlib import metadata
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[2]
#: Debian 12's, which the README and the images go by, and the newest when the lock was made.
PYTHONS = ("3.11.2", "3.14.0")


def test_every_locked_package_installs_on_debians_python():
    locked = [
        line.split("==")[0]
        for line in (ROOT / "requirements-dev.lock").read_text().splitlines()
        if "==" in line and not line.startswith((" ", "#"))
    ]
    assert len(locked) > 100
    wants = {name: metadata.metadata(name).get("Requires-Python") or "" for name in locked}
    for python in PYTHONS:
        assert [name for name, want in wants.items() if python not in SpecifierSet(want)] == []
