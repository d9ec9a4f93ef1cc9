"""Exercises: the answer that a solution asserts, its seal for students, and the check of theirs.

A solution is a code cell with the tag `solution`. Its first comment is the hint, and its first
assertion of a number or word at the top level is the answer: `assert first_loss == 43`,
`assert abs(share - 0.25) < 0.01`, `assert 37 < boundary_kb < 38`. A seal lets a program check an
answer without naming it.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from IPython.display import Markdown

from replication.base.errors import InputError
from replication.base.files import digest_of
from replication.report.notebooks.names import check_name, find_project

TAG = "solution"
#: Students' notebooks, below the project's folder, and the seals beside them.
COURSE, SEALS = Path("reports/course"), "answers.json"
#: Smallest relative tolerance of a number with decimals.
_LEAST = 0.01
#: Factors by which a right answer in another unit differs: prefixes, per cent, bits and bytes.
_UNITS = (1e3, 1e6, 100, 8)
#: Functions in an assertion that are no quantity.
_FUNCTIONS = {"abs", "int", "round", "float", "len", "math", "np"}


class Answer(NamedTuple):
    """The answer to an exercise: what is asked, its value, relative tolerance and a hint."""

    name: str
    value: float | str
    tolerance: float
    hint: str


def answer_of(source: str) -> Answer | None:
    """Return the answer that a solution's source asserts, or None."""
    comments = re.match(r"\s*((?:#.*\n)*)", source)
    hint = " ".join((comments[1] if comments else "").replace("#", " ").split())
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assert):
            for name, value, tolerance in _asserted(statement.test):
                return Answer(name, value, tolerance, hint)
    return None


def _asserted(test: ast.expr) -> Iterator[tuple[str, float | str, float]]:
    """Yield name, value and tolerance of the comparisons of one quantity with constants."""
    match test:
        case ast.BoolOp(values=parts):
            for part in parts:
                yield from _asserted(part)
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            value = _constant(right)
            if value is not None and (name := _quantity(left)):
                yield name, value, 0.0 if isinstance(value, int | str) else _LEAST
        case ast.Compare(left=first, ops=[ast.Lt(), ast.Lt()], comparators=[inner, last]):
            low, high = _number(first), _number(last)
            if name := _quantity(inner):
                yield from _within(name, (low + high) / 2, (high - low) / 2)
        case ast.Compare(
            left=ast.Call(
                func=ast.Name(id="abs"), args=[ast.BinOp(left=inner, op=ast.Sub(), right=middle)]
            ),
            ops=[ast.Lt()],
            comparators=[most],
        ):
            if name := _quantity(inner):
                yield from _within(name, _number(middle), _number(most))


def _within(name: str, middle: float, most: float) -> Iterator[tuple[str, float, float]]:
    if math.isfinite(middle + most) and middle:
        yield name, middle, max(most / abs(middle), _LEAST)


def _number(node: ast.expr) -> float:
    value = _constant(node)
    return value if isinstance(value, int | float) else math.nan


def _constant(node: ast.expr) -> float | str | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, int | float | str) else None


def _quantity(node: ast.expr) -> str:
    """Return an expression of a single variable as text, or an empty text."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} - _FUNCTIONS
    return ast.unparse(node) if len(names) == 1 else ""


def seal(answer: Answer, salt: str) -> dict[str, Any]:
    """Return what `is_right` needs to know of an answer, which is not in it in clear."""
    kept = {
        "salt": salt,
        "tolerance": answer.tolerance,
        "hint": answer.hint,
        "offset": 0.0,
        "is_number": not isinstance(answer.value, str),
    }
    if answer.tolerance:
        # The answer is in the middle of its class.
        kept["offset"] = round(0.5 - _position(float(answer.value), answer.tolerance) % 1, 6)
    return kept | {"seal": _digest(kept, answer.value)}


def is_right(kept: dict[str, Any], value: Any) -> bool:
    """Return whether a value is the sealed answer, within its tolerance."""
    return bool(_digest(kept, value) == kept["seal"])


def _position(value: float, tolerance: float) -> float:
    """Return a number's place on a logarithmic axis whose classes are as wide as the tolerance."""
    return math.log(abs(value)) / (2 * math.log1p(tolerance)) if value else -1e9


def _digest(kept: dict[str, Any], value: Any) -> str:
    said = str(value).strip().lower()
    number = number_in(value)
    if kept["tolerance"] and math.isfinite(number):
        place = math.floor(_position(number, kept["tolerance"]) + kept["offset"])
        said = f"{math.copysign(1, number):g} {place}"
    elif math.isfinite(number):
        said = f"{number:.9g}"
    return digest_of(f"{kept['salt']} {said}".encode())[:32]


def number_in(value: Any) -> float:
    """Return an answer as a number, of "50 %" one half; NaN if it is none."""
    words = str(value).strip()
    try:
        return float(words.removesuffix("%")) / (100 if words.endswith("%") else 1)
    except ValueError:
        return math.nan


def unit_hint(kept: dict[str, Any], value: Any) -> str:
    """Return what is wrong with the unit or the kind of an answer; empty if that is right."""
    number = number_in(value)
    if kept["is_number"] and math.isnan(number):
        return "Give a number, without a unit. "
    for factor in _UNITS:
        if is_right(kept, number / factor):
            return f"Your number is {factor:g} times too large: check its unit. "
        if is_right(kept, number * factor):
            return f"Your number is {factor:g} times too small: check its unit. "
    return ""


def check(exercise: str, answer: Any) -> Markdown:
    """Say whether an answer to an exercise of the course is right, or give a hint.

    Nothing leaves this machine. InputError: there is no such exercise, or no course.
    """
    path = Path.cwd() / SEALS
    if not path.is_file():
        path = find_project() / COURSE / SEALS
    if not path.is_file():
        raise InputError(f"{path}: does not exist; run `make course` first")
    seals: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    check_name("exercise", exercise, seals, str(path))
    if answer is ...:
        return Markdown("Replace the dots by your answer.")
    kept = seals[exercise]
    if is_right(kept, answer):
        return Markdown("**Right.**")
    hint = kept["hint"] or "compare units, and read the lecture's model again."
    return Markdown(f"**Not yet.** {unit_hint(kept, answer)}Hint: {hint}")
