"""Versions of ns-3 that the engine can be: pinned wheels, and Debian's package where it is."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from replication.study.files import sha256_of
from replication.study.scenario import TcpFlow

#: Each wheel is pinned by its hash in workflow/engines/ns3/wheels/<version>.lock.
Ns3Version = Literal["3.37", "3.39.post2", "3.44.post0"]
NS3_VERSIONS: tuple[str, ...] = get_args(Ns3Version)
NS3_VERSION: Ns3Version = "3.44.post0"
#: Debian 12's libns3-dev: no wheel, nothing pinned but by the hashes of the installed libraries.
SYSTEM_VERSION: Ns3Version = "3.37"
SYSTEM_PREFIX = Path("/usr")
WHEEL_VERSIONS = tuple(version for version in NS3_VERSIONS if version != SYSTEM_VERSION)
#: CUBIC's Reno-friendly region came with ns-3.41 (its release notes, #1001).
_CUBIC_FRIENDLINESS = 41


def minor(version: str) -> int:
    """Return the number after "3." in a version."""
    return int(version.split(".")[1])


def missing_packages(version: str, prefix: Path = SYSTEM_PREFIX) -> list[str]:
    """Return the Debian packages that `version` lacks to be built; a wheel is fetched."""
    if version != SYSTEM_VERSION:
        return []
    headers = prefix / "include" / "ns3" / "core-module.h"
    installed = headers.is_file() and bool(_installed(version, prefix))
    return [] if installed else ["libns3-dev"]


def system_libraries(version: str, prefix: Path = SYSTEM_PREFIX) -> str:
    """Return a hash over the installed libraries that `version` runs on; empty for a wheel."""
    return sha256_of(*_installed(version, prefix)) if version == SYSTEM_VERSION else ""


def _installed(version: str, prefix: Path) -> list[Path]:
    return sorted((prefix / "lib").glob(f"*/libns3-*.so.{minor(version)}"))


def lacks(version: str, flow: TcpFlow) -> str:
    """Return what `flow` asks for that this version has not, or an empty string."""
    control = flow.congestion_control
    friendly = control == "cubic" and flow.cubic_tcp_friendliness
    if friendly and minor(version) < _CUBIC_FRIENDLINESS:
        return f"with TCP friendliness in version {version}"
    return ""
