"""The session of a notebook: format of numbers, errors and controls."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pandas as pd

from replication.report.notebooks.picture import NOT_CONCLUDED, Html, Text
from replication.study.errors import InputError, RunError

_OURS = (InputError, RunError)


def prepare() -> None:
    """Show four digits of numbers, and errors of ours as one line."""
    pd.set_option("display.float_format", "{:,.4g}".format)
    for kind in _OURS:
        # IPython calls this method, if there is one, instead of formatting a traceback.
        setattr(kind, "_render_traceback_", lambda e: [f"{type(e).__name__}: {e}"])  # noqa: B010


def go_on() -> None:
    """Let a failing cell print that the results do not support it, and run the next cell.

    Errors of ours still stop the notebook, since they tell the user what to do.
    """
    from IPython.core.getipython import get_ipython
    from IPython.display import display

    def say(shell: Any, kind: type[BaseException], error: Exception, trace: Any, **_: Any) -> None:
        if isinstance(error, _OURS):
            shell.showtraceback((kind, error, trace))
        else:
            display(Text(f"{NOT_CONCLUDED} ({kind.__name__}: {error})"))  # type: ignore[no-untyped-call]

    def forgive(result: Any) -> None:
        if not isinstance(result.error_in_exec, _OURS):
            result.error_in_exec = None

    shell = get_ipython()
    assert shell is not None
    shell.set_custom_exc((Exception,), say)  # type: ignore[no-untyped-call]
    shell.events.register("post_run_cell", forgive)


def interact(function: Callable[..., Any], **controls: Any) -> Any:
    """Show controls for the parameters of a function, if the notebook is open in JupyterLab.

    A control is a list of choices or (low, high, step), as for `ipywidgets.interact`.
    """
    if not _is_interactive():
        return Html(
            "<p>In JupyterLab (<code>make lab</code>) controls are shown here. Elsewhere set the "
            f"parameters {', '.join(f'<code>{name}</code>' for name in controls)} at the top and "
            "run the notebook again.</p>"
        )
    import ipywidgets

    wait = ipywidgets.interact_manual.options(manual_name="Run")
    return wait(function, **controls) and None


def _is_interactive() -> bool:
    """Return whether JupyterLab or VS Code started the kernel."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    is_vscode = shell is not None and "__vsc_ipynb_file__" in shell.user_ns
    return ("JPY_SESSION_NAME" in os.environ or is_vscode) and find_spec("ipywidgets") is not None
