"""Render: the whole report from existing results, or one part of it."""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path

from altair.utils.schemapi import debug_mode

from replication.plan.pipeline import PAGES
from replication.report.assemble import assemble, replacing
from replication.report.parts.source import Source


def render(root: Path, data: Path, notebooks: Path, out: Path) -> None:
    """Write the whole report, its parts a process each.

    Parameters
    ----------
    root
        The project's folder, with configs and published numbers.
    data
        Folder of reproduced results.
    notebooks
        Folder of notebooks that were executed on these results, ``<study>.<name>.ipynb``.
    out
        The report's folder, replaced as a whole.

    Raises
    ------
    InputError
        A result is missing or malformed; the message names the file and what to run.
    """
    source = Source.load(root, data)
    with tempfile.TemporaryDirectory() as work:
        parts = [Path(work) / name for name in (*PAGES, *source.studies)]
        write = partial(write_part, source, notebooks)
        workers = min(len(source.studies), os.cpu_count() or 1)
        if workers < 2:
            for part in parts:
                write(part)
        else:
            with ProcessPoolExecutor(workers) as pool:
                list(pool.map(write, parts))
        assemble(source, parts, out)


def write_part(source: Source, notebooks: Path, folder: Path) -> None:
    """Write the part of the report that `folder` is named after, a study or one of `PAGES`.

    What the part's module needs is imported here, so that a change in another renders nothing
    else; `folder` is replaced as a whole.
    """
    name = folder.name
    # Altair would check every part of every chart against its schema again, which takes longer
    # than making them.
    with replacing(folder) as fresh, debug_mode(False):
        if name in source.studies:
            import_module("replication.report.writers.study").write(source, notebooks, fresh, name)
        else:
            import_module(f"replication.report.writers.{name}").write(source, notebooks, fresh)
