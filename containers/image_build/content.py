"""What is in an image: a hash over all files, and Debian's packages."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from replication.engines.image import cache, require
from replication.study.errors import RunError
from replication.study.files import write_text

#: Paths that a container engine makes itself when it lays out a container.
_NOT_CONTENT = ("dev/", "proc/", "sys/", "run/")
_NOT_CONTENT_FILES = (".dockerenv", "etc/hostname", "etc/hosts", "etc/resolv.conf", "etc/mtab")
_BUILD_PACKAGES = "opt/replicate/build-packages"
_STATUS = "var/lib/dpkg/status"


@dataclasses.dataclass(frozen=True)
class Content:
    """What is in an image: a hash over it, its packages, and those that built it."""

    sha256: str
    packages: dict[str, str]
    build_packages: dict[str, str]


@contextlib.contextmanager
def exported(tool: str, image: str) -> Iterator[IO[bytes]]:
    """Give the stream of a tar archive of all files of an image."""
    command = require(tool)
    made = subprocess.run(
        [command, "create", image, "/bin/true"], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        raise RunError(f"{image}: {tool} cannot lay it out: {made.stderr.strip()}")
    container = made.stdout.strip()
    try:
        export = subprocess.Popen([command, "export", container], stdout=subprocess.PIPE)
        assert export.stdout is not None
        with export.stdout:
            yield export.stdout
        if export.wait() != 0:
            raise RunError(f"{image}: {tool} cannot export it")
    finally:
        subprocess.run([command, "rm", "--force", container], capture_output=True, check=False)


def content_of(root: Path, tool: str, image: str) -> Content:
    """Return what is in the image of this id, looked at once: an id is a hash over all files."""
    looked = hashlib.sha256(f"{image} {Path(__file__).read_text(encoding='utf-8')}".encode())
    path = cache(root) / "content" / f"{looked.hexdigest()}.json"
    if not path.is_file():
        write_text(path, json.dumps(dataclasses.asdict(inspect(tool, image))))
    return Content(**json.loads(path.read_text(encoding="utf-8")))


def inspect(tool: str, image: str) -> Content:
    """Return what is in an image."""
    files: dict[str, str] = {}
    texts: dict[str, str] = {}
    entries: list[tuple[str, str]] = []
    with exported(tool, image) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            name = member.name.removeprefix("./").strip("/")
            if not name or name.startswith(_NOT_CONTENT) or name in _NOT_CONTENT_FILES:
                continue
            handle = archive.extractfile(member) if member.isreg() else None
            if handle is not None:
                data = handle.read()
                files[name] = hashlib.sha256(data).hexdigest()
                if name in (_STATUS, _BUILD_PACKAGES):
                    texts[name] = data.decode()
            # Which of several hard links comes first is the tool's affair.
            what = files.get(member.linkname) if member.islnk() else files.get(name)
            kind = "file" if what else f"{member.type.decode()} {member.linkname}"
            line = f"{name} {kind} {what} {member.mode:o} {member.uid}:{member.gid}"
            entries.append((name, line))
    digest = hashlib.sha256("\n".join(line for _, line in sorted(entries)).encode())
    build = dict(line.split("\t") for line in texts.get(_BUILD_PACKAGES, "").splitlines())
    return Content(digest.hexdigest(), _installed(texts.get(_STATUS, "")), build)


def _installed(status: str) -> dict[str, str]:
    """Return package to version from dpkg's status file."""
    packages = {}
    for paragraph in status.split("\n\n"):
        fields = dict(
            line.split(": ", 1)
            for line in paragraph.splitlines()
            if ": " in line and not line.startswith(" ")
        )
        if fields.get("Status", "").endswith(" installed"):
            packages[fields["Package"]] = fields["Version"]
    return packages
