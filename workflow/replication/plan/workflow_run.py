"""A run of the workflow as make asks for it: settings checked first, and errors alone shown.

    python -m replication.plan.workflow_run --cores CORES --profile PROFILE [SNAKEMAKE'S WORDS...]

Snakemake's `--quiet all` hides its errors too; its warnings and errors are shown here, in a line
with the remedy where we know one.
"""

from __future__ import annotations

import argparse
import functools
import logging
import re
import resource
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from replication.study.errors import InputError

PROFILES = Path("workflow/profiles")
#: Open files that Snakemake and a job of ours have been seen to need, and as many again.
OPEN_FILES = 256
#: Each job that ends sets the scheduler a timer of this span, and each timer sets the next: with
#: spans of a second, Snakemake's own, some hundred jobs keep it busy with its timers.
RATE = ("--max-jobs-per-timespan", "1000/30s")
#: What Snakemake says to what we say in its place.
REMEDIES = {
    "cannot be locked": (
        "another run holds {folder}, or one was killed there; if none is running: make unlock"
    ),
    "clock skew": (
        "files here are from the future: the clock was set back. Set it right, or run "
        "`find data/reproduced reports -newermt now -exec touch -h {{}} +`, and run again"
    ),
}
_FAILED = re.compile(r'CalledProcessError in file "(.*?)", line (\d+):.* status (\d+)', re.DOTALL)
#: What Snakemake says beside the error itself.
_BESIDE = ("At least one job did not complete successfully", "Exiting because a job execution")


def main(words: Sequence[str] | None = None) -> None:
    """Check the settings and run Snakemake in this process; end with its exit code."""
    parser = argparse.ArgumentParser(prog="workflow_run", add_help=False, allow_abbrev=False)
    parser.add_argument("--cores", default="")
    parser.add_argument("--profile", default="default")
    given, rest = parser.parse_known_args(words)
    try:
        options = [*core_option(given.cores), "--workflow-profile", str(profile(given.profile))]
        require_open_files()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    logging.getLogger("snakemake.logging").addFilter(functools.partial(show, said=set()))
    from snakemake.cli import main as snakemake

    try:
        # A target may follow: --quiet would take it for a setting of its own, were it the last.
        snakemake(["--quiet", "progress", "rules", "reason", "host", *RATE, *options, *rest])
    finally:
        cancel_timers()


def cancel_timers() -> None:
    """Cancel the timers that are left, for which this process would wait before it ends.

    The scheduler sets one a timespan of its rate limit, and has nothing to look at at the end.
    """
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()


def core_option(text: str) -> list[str]:
    """Return Snakemake's option for CORES; none where it is not given, for the profile's own.

    Raises
    ------
    InputError
        It is neither a whole number of at least 1 nor `all`; Snakemake would wait for ever on 0.
    """
    text = text.strip()
    if text in ("", "all"):
        return ["--cores", text] if text else []
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise InputError(f"CORES: {text!r} must be a whole number of at least 1, or all")
    return ["--cores", text]


def profile(name: str) -> Path:
    """Return the folder of a profile.

    Raises
    ------
    InputError
        There is none of that name; the message has those that there are.
    """
    known = sorted(path.parent.name for path in PROFILES.glob("*/config.yaml"))
    if name not in known:
        raise InputError(f"PROFILE: {name!r} is unknown; there are {', '.join(known)}")
    return PROFILES / name


def require_open_files() -> None:
    """Raise our limit of open files as far as needed and allowed.

    Raises
    ------
    InputError
        So many are not allowed.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < OPEN_FILES:
        raise InputError(f"ulimit -n: {hard} open files are too few; allow {OPEN_FILES} or more")
    if soft != resource.RLIM_INFINITY and soft < OPEN_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, hard))


def show(record: logging.LogRecord, said: set[str]) -> bool:
    """Return whether a record of Snakemake's log is shown: warnings and errors, each once.

    The text becomes the remedy, if we know one.
    """
    text = str(record.msg)
    if record.levelno < logging.WARNING or any(words in text for words in _BESIDE):
        return False
    if failed := _FAILED.search(text):
        place = f"{Path(failed[1]).name}, line {failed[2]}"
        text = f"error: the job of {place} ended with code {failed[3]}; its last words are above"
    for words, remedy in REMEDIES.items():
        if words in text:
            text = f"error: {remedy.format(folder=Path.cwd())}"
    record.msg, record.args = text, ()
    first = text not in said
    said.add(text)
    return first


if __name__ == "__main__":
    main()
