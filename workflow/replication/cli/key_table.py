"""The tables of keys in configs/README.md, written from the typed models.

A key's meaning is the text below its field. `<!-- keys: Link -->` begins the table of one model,
`<!-- kinds: Queue -->` that of a union, a line a model; `<!-- end -->` ends either.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from replication.judge.cause import (
    Cause,
    CauseLevel,
    CauseRange,
    Explanations,
    HeldOut,
    Reading,
    Stage,
)
from replication.plan.config import Config, Tier
from replication.sensitivity.maps.map_model import (
    Axis,
    AxisLevel,
    Law,
    Map,
    MapSettings,
    OfBdp,
    Sentence,
    Spending,
)
from replication.sensitivity.modern_kernel import StandIn, Today, TodayTier
from replication.study.change import Change
from replication.study.claim_model import Claim, Quantity, Test
from replication.study.level import Level
from replication.study.link import Link, Queue
from replication.study.scenario import CbrFlow, Host, TcpFlow
from replication.study.sensitivity_settings import (
    ExplanationSearch,
    Importance,
    Scale,
    Sensitivity,
    StudyScale,
)
from replication.study.study import Experiment, Factor, Parameter, Study, Substitution
from replication.study.table_model import Cell, Table
from replication.study.variation import Range, Variation

MODELS: dict[str, type[BaseModel]] = {
    model.__name__: model
    for model in (
        *(Config, Tier, Sensitivity, StudyScale, Scale, Importance, ExplanationSearch),
        *(Map, Axis, AxisLevel, OfBdp, Sentence, Law, MapSettings, Spending),
        *(Today, TodayTier, StandIn),
        *(Explanations, HeldOut, Stage, Cause, CauseLevel, CauseRange, Reading, Variation, Range),
        *(Study, Parameter, Experiment, Factor, Level, Link, TcpFlow, CbrFlow, Host, Table, Cell),
        *(Claim, Quantity, Change, Substitution),
    )
}
UNIONS = {"Queue": Queue, "Test": Test}
UNITS = {
    "_bps": "bit/s",
    "_bytes": "bytes",
    "_hz": "1/s",
    "_packets": "packets",
    "_s": "s",
    "_segments": "segments",
}
_TABLE = re.compile(r"(<!-- (keys|kinds): (\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def with_tables(text: str) -> str:
    """Return a document with each of its tables as the models have it now."""

    def table(found: re.Match[str]) -> str:
        lines = key_rows(MODELS[found[3]]) if found[2] == "keys" else kind_rows(UNIONS[found[3]])
        return found[1] + "\n" + "".join(f"| {' | '.join(row)} |\n" for row in lines) + "\n"

    return _TABLE.sub(table, text)


def key_rows(model: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a model's table: key, unit, default, meaning."""
    yield "key", "unit", "default", "meaning"
    yield ("---",) * 4
    for name, meaning in meanings(model).items():
        field = model.model_fields[name]
        unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
        yield _key(name, field), unit, _default(field, "`{}`".format), meaning


def kind_rows(union: Any) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a union's table: kind, its meaning, its further keys."""
    yield "kind", "meaning", "further keys"
    yield ("---",) * 3
    for model in get_args(get_args(union)[0]):
        keys = [
            _key(name, field) + _choices(field) + _default(field, " ({})".format)
            for name, field in model.model_fields.items()
            if name != "kind"
        ]
        kind = get_args(model.model_fields["kind"].annotation)[0]
        yield f"`{kind}`", _escaped(inspect.getdoc(model) or ""), ", ".join(keys)


def meanings(model: type[BaseModel]) -> dict[str, str]:
    """Return the text below each field of a model; a field without one has no row."""
    found = {}
    for owner in reversed(model.__mro__):
        if not issubclass(owner, BaseModel) or owner is BaseModel:
            continue
        (body,) = ast.parse(inspect.getsource(owner)).body
        assert isinstance(body, ast.ClassDef)
        for field, after in zip(body.body, body.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
                assert isinstance(field.target, ast.Name)
                found[field.target.id] = _escaped(ast.literal_eval(after.value))
    return found


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _key(name: str, field: FieldInfo) -> str:
    return f"`{name}` *" if field.is_required() else f"`{name}`"


def _choices(field: FieldInfo) -> str:
    if get_origin(field.annotation) is not Literal:
        return ""
    return f": {', '.join(f'`{choice}`' for choice in get_args(field.annotation))}"


def _default(field: FieldInfo, shown: Callable[[str], str]) -> str:
    """Return a field's default as a document has it; nothing where it has none, or an empty one."""
    value = field.default
    if field.is_required() or value is None or value in ([], {}):
        return ""
    return shown(value if isinstance(value, str) else json.dumps(value)) if value != "" else ""
