"""Put the guest's archive and the launcher together: the same sources give the same bytes.

usage: assemble.py initrd PROGRAM FILE | assemble.py launcher FOLDER FILE
"""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "launcher"))

from archive import archive

#: Isolated from the user's own Python modules and settings.
INTERPRETER = b"#!/usr/bin/env -S python3 -IS\n"
EARLIEST = (1980, 1, 1, 0, 0, 0)


def write_initrd(program: Path, target: Path) -> None:
    """Write the archive that holds the guest's init and its console."""
    target.write_bytes(archive({"init": program.read_bytes()}, console=True))


def write_launcher(folder: Path, target: Path) -> None:
    """Write the launcher's modules as one executable file."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as bundle:
        for module in sorted(folder.glob("*.py")):
            info = zipfile.ZipInfo(module.name, EARLIEST)
            info.external_attr = 0o644 << 16
            bundle.writestr(info, module.read_bytes())
    target.write_bytes(INTERPRETER + content.getvalue())
    target.chmod(0o755)


if __name__ == "__main__":
    what, source, destination = sys.argv[1:]
    {"initrd": write_initrd, "launcher": write_launcher}[what](Path(source), Path(destination))
