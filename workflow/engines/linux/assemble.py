"""Put the guest's archive and the launcher together: the same sources give the same bytes.

usage: assemble.py initrd PROGRAM FILE | assemble.py launcher FILE FOLDER...
"""

from __future__ import annotations

import io
import os
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "launcher"))

from archive import archive

#: Isolated from the user's own Python modules and settings.
INTERPRETER = b"#!/usr/bin/env -S python3 -IS\n"
EARLIEST = (1980, 1, 1, 0, 0, 0)


def _replace(target: Path, content: bytes, mode: int) -> None:
    """Write beside the target, then move into place: another build may be using it."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.chmod(mode)
    temporary.replace(target)


def write_initrd(program: Path, target: Path) -> None:
    """Write the archive that holds the guest's init and its console."""
    _replace(target, archive({"init": program.read_bytes()}, console=True), 0o644)


def write_launcher(target: Path, *folders: Path) -> None:
    """Write the modules of all folders as one executable file."""
    content = io.BytesIO()
    modules = sorted((m for f in folders for m in f.glob("*.py")), key=lambda m: m.name)
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as bundle:
        for module in modules:
            info = zipfile.ZipInfo(module.name, EARLIEST)
            info.external_attr = 0o644 << 16
            bundle.writestr(info, module.read_bytes())
    _replace(target, INTERPRETER + content.getvalue(), 0o755)


if __name__ == "__main__":
    what, *paths = sys.argv[1:]
    if what == "initrd":
        write_initrd(*map(Path, paths))
    else:
        write_launcher(*map(Path, paths))
