"""Licences of what the project uses: the locked packages, the engines, and what is its own."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

from replication.study.table import Row, write_table

COLUMNS = ("name", "version", "licence", "how it is used")
#: What is fetched, installed or patched beside Python packages, with the licence that its authors
#: state: ns-3 and ns-2 in their LICENSE and COPYRIGHTS files, Linux in COPYING.
ENGINES = (
    ("ns-3", "GPL-2.0-only", "libraries of the wheel; our program is linked against them"),
    ("ns-2", "GPL-2.0-or-later, parts BSD", "Debian's package, started as a program"),
    (
        "Linux",
        "GPL-2.0-only WITH Linux-syscall-note",
        "built from Debian's source with our patches",
    ),
)
#: What a package says that says nothing.
NOT_STATED = "not stated"
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", re.MULTILINE)
_LICENCE = "License :: OSI Approved :: "


def licences(root: Path) -> list[Row]:
    """Return name, version, licence and use of everything that a run needs."""
    rows = [
        {"name": name, "version": "", "licence": licence, "how it is used": use}
        for name, licence, use in ENGINES
    ]
    for name, version in _PIN.findall((root / "requirements.lock").read_text(encoding="utf-8")):
        rows.append(
            {
                "name": name,
                "version": version,
                "licence": _licence(name),
                "how it is used": "Python package",
            }
        )
    return rows


def write_licences(root: Path, path: Path) -> int:
    """Write the list as CSV; return how many there are."""
    rows = licences(root)
    write_table(path, rows, COLUMNS)
    return len(rows)


def _licence(name: str) -> str:
    """Return what an installed package states, in SPDX's words if it does; empty if nothing."""
    try:
        stated = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return NOT_STATED
    classifiers = [c for c in stated.get_all("Classifier") or () if c.startswith(_LICENCE)]
    words = [*(stated.get_all("License-Expression") or ()), *(stated.get_all("License") or ())]
    short = [text for text in words if text and text != "UNKNOWN"]
    if short and "\n" not in short[0].strip() and len(short[0]) < 100:
        return str(short[0]).strip()
    return "; ".join(c.removeprefix(_LICENCE) for c in classifiers) or NOT_STATED
