"""Errors that a user can mend: the command line prints them in one line and exits with 2."""

from __future__ import annotations

from pydantic import ValidationError


class InputError(ValueError):
    """Something given to us is wrong; the message names file, field, value and remedy."""


class RunError(RuntimeError):
    """Something went wrong while running; the message names what to look at (exit code 1)."""


def describe(error: ValidationError, limit: int = 5) -> str:
    """Return a readable line for each problem pydantic found: field, value, what it must be."""
    problems = error.errors(include_url=False)
    lines = []
    for problem in problems[:limit]:
        field = ".".join(str(part) for part in problem["loc"]) or "(document)"
        value = problem.get("input")
        shown = f" (got {_short(value)})" if not isinstance(value, dict | list) else ""
        lines.append(f"{field}: {problem['msg'].removeprefix('Value error, ')}{shown}")
    if len(problems) > limit:
        lines.append(f"and {len(problems) - limit} more")
    return "; ".join(lines)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
