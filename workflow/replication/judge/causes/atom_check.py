"""Whether a study's atoms fit it: tables, rows, parameters, links and readings that exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from replication.judge.causes.atom import (
    Atom,
    Explanations,
    Setting,
    named_flows,
    named_links,
)
from replication.judge.causes.reading import refusal
from replication.measure.cell_map import MappedCell
from replication.study.assumption import assumptions
from replication.study.errors import InputError
from replication.study.sensitivity_settings import explanations_path
from replication.study.study import Study


def check_explanations(found: Explanations, study: Study, cells: Sequence[MappedCell]) -> None:
    """Check a study's atoms, rungs and unseen rows against it.

    Raises
    ------
    InputError
        They name what is not there, or a value outside the ledger without a reason.
    """
    where = explanations_path(Path(), study.id)
    rows = {(cell.table, cell.row) for cell in cells}
    for place, part in [("unseen", found.unseen.rows), *_rungs(found)]:
        for table, keys in part.items():
            for key in keys:
                if (table, key) not in rows:
                    raise InputError(f"{where}: {place}.rows.{table}: study has no row {key!r}")
    claims = {claim.id for claim in study.claims}
    for claim in [*found.unseen.claims, *(c for rung in found.rungs for c in rung.claims)]:
        if claim not in claims:
            raise InputError(f"{where}: study has no claim {claim!r}")
    if found.score == "cells" and not found.unseen.rows:
        raise InputError(f"{where}: unseen.rows: name rows that the search must not see")
    for atom in found.atoms:
        _check_atom(where, atom, study, cells)


def _rungs(found: Explanations) -> Iterable[tuple[str, dict[str, list[str]]]]:
    return ((f"rungs[{number}]", rung.rows) for number, rung in enumerate(found.rungs))


def _check_atom(where: Path, atom: Atom, study: Study, cells: Sequence[MappedCell]) -> None:
    named = f"{where}: atom {atom.id}"
    if atom.is_reading:
        concerned = [cell for cell in cells if atom.concerns(cell.table, cell.column)]
        if not concerned:
            raise InputError(f"{named}: no number stands in its tables and columns")
        for level in atom.levels or []:
            refused = [refusal(cell, level.reading) for cell in concerned]
            if all(refused):
                raise InputError(f"{named}: level {level.key}: {refused[0]}")
        return
    for setting in atom.settings.values():
        _check_setting(named, atom, setting, study)


def _check_setting(named: str, atom: Atom, setting: Setting, study: Study) -> None:
    setting.on(study)
    links, flows = named_links(study) | {"*"}, {*named_flows(study), "*"}
    for link in [*setting.links, *setting.rate_factor, *setting.delay_factor]:
        if link not in links:
            raise InputError(f"{named}: no experiment has a link {link!r}; they have {links}")
    for flow in setting.flows:
        if flow not in flows:
            raise InputError(f"{named}: no experiment has a flow {flow!r}; they have {flows}")
    ledger = {assumption.key: assumption for assumption in assumptions(study)}
    for key, value in setting.parameters.items():
        plausible = key in ledger and ledger[key].allows(value)
        if not plausible and atom.outside_ledger is None:
            raise InputError(
                f"{named}: {key} = {value!r} is not plausible by the ledger; widen its range "
                "there, or say under outside_ledger why it may be tried"
            )
