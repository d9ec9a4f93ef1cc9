"""The engines' page: what ran, whether the engines agree, and where they differ.

Other modules put sections of their own on it: see `SECTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from replication.engines.catalogue import ENGINES, family_of
from replication.engines.debian import package_warning
from replication.judge.headline import Headline
from replication.judge.participation import Participation
from replication.report.pages.compared.agreement import AgreementView, agreement_view
from replication.report.pages.compared.conformance import conformance_view
from replication.report.parts.source import Source
from replication.study.study import Study

#: Sections of other modules, in the order of the page: (template, title, view function). The
#: function takes the `Source` and returns what the template needs, or None for no section. The
#: template has a macro ``section(view)``; ids of its elements begin with the template's name.
#: The view has `figures`, which follow what the template shows.
SECTIONS: tuple[tuple[str, str, Callable[[Source], Any]], ...] = (
    ("conformance.html", "What each engine must show first", conformance_view),
)


@dataclass(frozen=True)
class Section:
    """A section of another module; `template` has the macro that shows `view`."""

    id: str
    title: str
    template: str
    view: Any


@dataclass(frozen=True)
class EngineView:
    """One engine: its exact version, whose papers ran it, and its part in each study.

    `warning` says that Debian's package of it is not the one that the lock names, `installed`
    which installed simulator it ran on, if the user named one.
    """

    name: str
    family: str
    version: str
    warning: str
    installed: str
    ran: bool
    original_of: list[Study]
    parts: list[tuple[Study, Participation]]


@dataclass(frozen=True)
class EnginesPage:
    """Everything on the engines' page."""

    engines: list[EngineView]
    missing: list[EngineView]
    headlines: list[tuple[Study, Headline]]
    agreement: AgreementView | None
    sections: list[Section]


def engines_page(source: Source) -> EnginesPage:
    """Gather the engines' page."""
    views = [_engine(source, name) for name in dict.fromkeys((*source.engines, *ENGINES))]
    return EnginesPage(
        engines=[view for view in views if view.ran],
        missing=[view for view in views if not view.ran],
        headlines=[(study, source.headlines[name]) for name, study in source.studies.items()],
        agreement=agreement_view(source),
        sections=sections(source),
    )


def sections(source: Source) -> list[Section]:
    """Return the sections of other modules that have something to show."""
    found = [(template, title, view(source)) for template, title, view in SECTIONS]
    return [
        Section(template.removesuffix(".html"), title, template, view)
        for template, title, view in found
        if view is not None
    ]


def _engine(source: Source, name: str) -> EngineView:
    ran = source.provenance.get("engines", {}).get(name, {})
    known = ENGINES[name].version if name in ENGINES else ""
    return EngineView(
        name=name,
        family=family_of(name),
        version=str(ran.get("version", known)),
        warning=package_warning(ran.get("package") or {}),
        installed=_installed(ran.get("installed")),
        ran=name in source.engines,
        original_of=[s for s in source.studies.values() if s.original_system.engine == name],
        parts=[
            (study, source.parts[id][name])
            for id, study in source.studies.items()
            if name in source.parts[id]
        ],
    )


def _installed(found: dict[str, Any] | None) -> str:
    if not found:
        return ""
    same = "gives the wheel’s bytes" if found["as_pinned"] else "gives results of its own"
    return f"an installed build ({found['build']}) that {same} in the canonical scenarios"
