"""Put the guest's archive and the launcher together: the same sources give the same bytes.

The launcher is a folder `program` of modules, compiled once, and a script that starts it.

usage: assemble.py initrd PROGRAM FILE | assemble.py launcher FILE FOLDER...
"""

from __future__ import annotations

import compileall
import os
import py_compile
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "launcher"))

from archive import archive

#: Isolated from the user's own Python modules and settings.
SCRIPT = b'#!/bin/sh\nexec python3 -I -S -B "${0%/*}/program" "$@"\n'


def _replace(target: Path, content: bytes, mode: int) -> None:
    """Write to a temporary file, then move it into place: another build may use the target."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.chmod(mode)
    temporary.replace(target)


def write_initrd(program: Path, target: Path) -> None:
    """Write the archive that holds the guest's init and its console."""
    _replace(target, archive({"init": program.read_bytes()}, console=True), 0o644)


def write_launcher(target: Path, *folders: Path) -> None:
    """Compile the modules of all folders into one folder next to the script that starts them."""
    program = target.with_name("program")
    temporary = target.with_name(f".program.{os.getpid()}")
    temporary.mkdir()
    for module in (module for folder in folders for module in folder.glob("*.py")):
        shutil.copyfile(module, temporary / module.name)
    # The name that tracebacks show is the module's; without dates, so that bytes are the same.
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    if not compileall.compile_dir(temporary, ddir="", quiet=1, invalidation_mode=mode):
        sys.exit(1)
    shutil.rmtree(program, ignore_errors=True)
    temporary.rename(program)
    _replace(target, SCRIPT, 0o755)


if __name__ == "__main__":
    os.umask(0o022)  # other users run the engine too
    what, *paths = sys.argv[1:]
    if what == "initrd":
        write_initrd(*map(Path, paths))
    else:
        write_launcher(*map(Path, paths))
