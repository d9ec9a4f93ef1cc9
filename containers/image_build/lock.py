"""The lock of the images: what they are made of, what came out, and how a build differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from replication.study.files import read_model, write_text
from replication.study.model import Document

HEAD = """\
# What containers/ is built from and what came out. `make images` says how a build differs from it;
# `make images UPDATE_LOCK=1` writes it anew.
"""


class BaseLock(Document):
    """The base image: packages, and a hash over all files, their owners and modes (no dates)."""

    reference: str
    archive_sha256: str | None
    content_sha256: str
    packages: dict[str, str]


class ImageLock(Document):
    """One image.

    `content_sha256` is the same whichever tool builds it; `id` also covers how the layers are
    packed and so depends on the builder. `packages` are those beyond the base.
    """

    id: str
    content_sha256: str
    packages: dict[str, str]
    build_packages: dict[str, str]
    wheels: dict[str, str]


class Lock(Document):
    """containers/lock.yaml: image names to what they are made of."""

    builder: str
    base: BaseLock
    images: dict[str, ImageLock]


def read_lock(path: Path) -> Lock:
    """Return the lock in `path`; InputError names what is wrong with it."""
    return read_model(path, Lock)


def write_lock(path: Path, lock: Lock) -> None:
    """Write the lock; the same lock gives the same bytes."""
    text = yaml.safe_dump(lock.model_dump(mode="json"), sort_keys=True, width=1000)
    write_text(path, HEAD + text)


def differences(locked: Lock, built: Lock) -> list[str]:
    """Return a line for each value in which `built` differs from `locked`; none if they agree.

    Only images that were built are compared, and ids only where the same builder made both.
    """
    images = {name: image for name, image in locked.images.items() if name in built.images}
    old = dict(_values(locked.model_copy(update={"images": images}).model_dump()))
    new = dict(_values(built.model_dump()))
    if old.pop("builder") != new.pop("builder"):
        old, new = ({k: v for k, v in d.items() if not k.endswith(".id")} for d in (old, new))
    lines = []
    for key in sorted(old.keys() | new.keys()):
        was, now = old.get(key, "nothing"), new.get(key, "nothing")
        if was != now:
            lines.append(f"{key}: locked {was}, built {now}")
    return lines


def _values(document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        if isinstance(value, dict):
            yield from _values(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
