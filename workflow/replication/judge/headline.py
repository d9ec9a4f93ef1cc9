"""The headline: which engine's verdicts stand for a study that several engines ran.

The paper's own family stands if it really ran points of the study; else ns3, which all studies can
run; else the first that ran. Whoever stands in is marked as such wherever verdicts are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replication.engines.catalogue import family_of
from replication.judge.participation import Participation

#: Stands in for a family that did not run.
DEFAULT = "ns3"


@dataclass(frozen=True)
class Headline:
    """Whose verdicts stand for a study.

    Attributes
    ----------
    engine
        The engine; empty where no engine was asked.
    original
        The family that the paper ran.
    mark
        What a reader must know of a fallback; empty where the paper's own family stands.
    """

    engine: str
    original: str
    mark: str


def headline(original: str, parts: Mapping[str, Participation]) -> Headline:
    """Return whose verdicts stand for a study.

    Parameters
    ----------
    original
        The family that the paper ran (``original_system.engine``).
    parts
        What `participations` returns for the study's design.
    """
    ran = [name for name, part in parts.items() if part.ran]
    candidates = [name for name in (original, DEFAULT) if name in ran] + ran
    if not candidates:
        asked = next(iter(parts), "")
        why = f"; {asked} {parts[asked].why_not()}" if asked else ""
        return Headline(asked, original, f"No engine ran this study{why}.")
    engine = candidates[0]
    if engine == original:
        return Headline(engine, original, "")
    why = parts[original].why_not() if original in parts else "did not run here"
    said = f"the paper ran {family_of(original)}, which {why}"
    return Headline(engine, original, f"Verdicts of {engine}; {said}.")
