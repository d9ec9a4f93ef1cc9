"""Start Snakemake or `replicate`, whose known ends become one line.

Nothing else is imported before signals are handled.
"""

import logging
import os
import re
import signal
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

from replication.base.lifetime import handle_signals, signal_received

_ROOT = Path(__file__).resolve().parents[3]
_INTERRUPTED = "interrupted; run the same command again"
_LOCKED = (
    "error: this folder is locked: wait for the run that is at work in it, or run `make unlock` if "
    "it was killed"
)
_REMEDY = "make the environment again: rm -r .venv; make setup"


def workflow() -> None:
    """Run Snakemake with this process's arguments."""
    _run(_snakemake)


def replicate() -> None:
    """Run `replicate` with this process's arguments."""
    _run(_replicate)


def _snakemake() -> None:
    if missing := _missing_packages(_ROOT / "requirements.lock"):
        raise ImportError(name=missing[0])
    logging.getLogger("snakemake.logging").addFilter(_shorten)
    from snakemake.cli import main

    main()


def _replicate() -> None:
    from replication.cli.main import main

    main()


def _run(command: Callable[[], None]) -> None:
    handle_signals()
    # Make blocks it while Python starts.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    code: str | int | None = 0
    try:
        command()
    except SystemExit as end:
        code = end.code
    except ImportError as error:
        print(f"error: package {error.name} is missing in {sys.prefix}: {_REMEDY}", file=sys.stderr)
        code = 1
    if number := signal_received():
        print(_INTERRUPTED, file=sys.stderr)
        code = 128 + number
    try:
        sys.stdout.flush()
    except OSError as error:
        if not code:
            print(f"error: standard output: {error.strerror}", file=sys.stderr)
        code = code or 1
        # Python would flush it again and print a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)


def _shorten(record: logging.LogRecord) -> bool:
    """Replace Snakemake's lines on a locked folder, and drop those after an interruption."""
    if "Directory cannot be locked" in str(record.msg):
        record.msg, record.args = _LOCKED, ()
    return signal_received() is None


def _missing_packages(lock: Path) -> list[str]:
    packages = Path(sysconfig.get_path("purelib")).glob("*.dist-info")
    installed = {_normal(path.name.split("-")[0]) for path in packages}
    locked = re.findall(r"(?m)^([\w.-]+)==", lock.read_text(encoding="utf-8"))
    return [name for name in locked if _normal(name) not in installed]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    workflow()
