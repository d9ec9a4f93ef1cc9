"""The manifest of the release: the SHA-256 of every file of its data and its pages."""

import os
import re
import stat
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from replication.base import files
from replication.base.errors import InputError

RELEASED, PAGES = Path("data/release"), Path("reports/release")
MANIFEST = RELEASED / "manifest.sha256"
#: Written by `replicate refresh-notebooks` after the release, with their lines of the manifest.
NOTEBOOK_PAGES = PAGES / "notebooks"
#: Describes the archive of series.
ARCHIVE = RELEASED / "archive.yaml"
PROVENANCE = "provenance.json"
#: Describes the release for programs that read RO-Crates, and the workflow, which a crate contains.
CRATE, WORKFLOW = "ro-crate-metadata.json", "Snakefile"


class Listing(NamedTuple):
    """The SHA-256 of each file below a folder, and what is wrong with other entries, by path."""

    digests: dict[str, str]
    odd: dict[str, str]


def listing(root: Path, *folders: Path) -> Listing:
    """List folders of `root`; a link is odd wherever it points, and so is an empty folder."""
    digests, odd = {}, {}
    tops = [root / name for name in folders]
    inside = chain.from_iterable(top.rglob("*") for top in tops)
    for path in sorted([*tops, *inside]):
        name = path.relative_to(root)
        if path.is_symlink():
            odd[name.as_posix()] = "a link"
        elif not path.exists():
            continue  # a missing folder: each of its files is missing
        # Root can read everything.
        elif not (os.access(path, os.R_OK) and path.stat().st_mode & stat.S_IRUSR):
            odd[name.as_posix()] = "unreadable"
        elif path.is_file():
            digest = _archive_sha256 if name == ARCHIVE else files.file_sha256
            digests[name.as_posix()] = digest(path)
        elif not path.is_dir():
            odd[name.as_posix()] = "not a file"
        elif not any(path.iterdir()):
            odd[name.as_posix()] = "an empty folder"
    return Listing(digests, odd)


def _archive_sha256(path: Path) -> str:
    """Return the SHA-256 of archive.yaml without its address, which is added after the release."""
    return files.digest_of(re.sub(rb"(?m)^address:.*\n?", b"", path.read_bytes()))


def lines_of(digests: Mapping[str, str]) -> str:
    """Return the lines of a manifest, sorted by name."""
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))


def manifest(root: Path) -> str:
    """Return the SHA-256 of each file of the release, one line a file, as `sha256sum` prints it.

    That of archive.yaml is without its address. InputError: there are links or empty folders.
    """
    digests, odd = listing(root, RELEASED, PAGES)
    for name, what in odd.items():
        raise InputError(f"{name}: is {what}, which a release must not have; remove it")
    digests.pop(MANIFEST.as_posix(), None)
    return lines_of(digests)


def _read_manifest(root: Path) -> dict[str, str]:
    """Return the SHA-256 of each file by its name; InputError if a line has another form."""
    digests = {}
    for number, line in enumerate(files.read_text(root / MANIFEST).splitlines(), start=1):
        digest, gap, name = line.partition("  ")
        if not re.fullmatch(r"[0-9a-f]{64}", digest) or not gap or name in digests:
            raise InputError(
                f"{MANIFEST}, line {number}: {line[:80]!r} is not the SHA-256 and name of a "
                f"further file; restore it: git checkout -- {MANIFEST}"
            )
        digests[name] = digest
    return digests


def refresh_manifest(root: Path) -> None:
    """Write the lines of the lectures' pages in the manifest anew, and no others."""
    digests = _read_manifest(root)
    for name in [*digests]:
        if Path(name).is_relative_to(NOTEBOOK_PAGES):
            del digests[name]
    digests |= listing(root, NOTEBOOK_PAGES).digests
    files.write_text(root / MANIFEST, lines_of(digests))


def require_unaltered(
    root: Path, concerns: Callable[[Path], bool] = lambda name: True
) -> dict[str, str]:
    """Compare files of the release with the manifest; return their SHA-256 by name.

    `concerns` chooses files by their names. InputError: some differ, are missing or were added, or
    there are links, empty folders or unreadable entries.
    """
    noted = _read_manifest(root)
    digests, odd = listing(root, RELEASED, PAGES)
    digests.pop(MANIFEST.as_posix(), None)
    wrong = dict(odd)
    for name in noted.keys() - digests.keys() - odd.keys():
        wrong[name] = "missing"
    for name, digest in digests.items():
        if digest != noted.get(name):
            wrong[name] = "changed" if name in noted else "added"
    if names := sorted(name for name in wrong if concerns(Path(name))):
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        listed = ", ".join(f"{name} ({wrong[name]})" for name in names[:5])
        raise InputError(
            f"release: altered since it was made: {listed}{more}; restore it: remove what was "
            f"added, and git checkout -- {RELEASED} {PAGES}; or make it anew: make release"
        )
    return {name: digest for name, digest in digests.items() if concerns(Path(name))}


def check_release(root: Path) -> str:
    """Compare every file of the release with its manifest; return a sentence.

    InputError names the files that differ.
    """
    count = len(require_unaltered(root))
    provenance = files.read_json(root / RELEASED / PROVENANCE)
    return (
        f"release: tier {provenance['tier']['id']} of {provenance['written']}; its {count} files "
        f"are those that {MANIFEST} lists (archive.yaml is compared without its address)"
    )
