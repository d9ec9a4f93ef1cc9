"""Unpack kept runs into the store, so that they are not made again: restore_runs.py ARCHIVE..."""

import sys
import tarfile
import zipfile
from collections import defaultdict
from pathlib import Path

STORES = Path("data/reproduced/store")

for archive in sys.argv[1:]:
    runs: defaultdict[Path, dict[str, bytes]] = defaultdict(dict)
    with tarfile.open(archive) as packed:
        for member in packed:
            store, scenario, name = member.name.split("/")
            content = packed.extractfile(member)
            assert content is not None
            runs[STORES / store / f"{scenario}.zip"][name] = content.read()
    for path, files in runs.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as run:
            for name, data in files.items():
                run.writestr(name, data)
    print(f"{archive}: {len(runs)} runs")
