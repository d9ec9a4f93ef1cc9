"""A claim as a card: words, test, and on each engine verdict and evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from replication.report.pages.number import parse
from replication.report.pages.source import PointLinks, Source, under
from replication.report.pages.verdict import badge
from replication.study.claim_model import Claim
from replication.study.study import Study
from replication.verdicts.claim import conditions
from replication.verdicts.verdict_table import Judged
from replication.verdicts.wording import wording


def claim_cards(
    source: Source, study: Study, rows: Sequence[Judged], links: PointLinks
) -> list[dict[str, Any]]:
    """Return the cards of a study's claims, from their rows on the engines that are shown."""
    known = {claim.id: claim for claim in study.claims}
    engines = source.shown_engines(study.id)
    cards = []
    for name in dict.fromkeys([*known, *(row["claim"] for row in rows)]):
        results = [row for row in rows if row["claim"] == name]
        if not results:
            continue
        results.sort(key=lambda row: engines.index(row["engine"]) if row["engine"] else -1)
        claim = known.get(name)
        cards.append(
            {
                "id": name,
                "quote": results[0]["quote"],
                "place": results[0]["place"],
                "reading": claim.reading if claim else "",
                "tests": list(_tests(study, claim)) if claim else [],
                "measured": _measured(study, claim, results[0]) if claim else "",
                # One an engine, that of the headline first.
                "results": [
                    {
                        "row": row,
                        "verdict": badge(row["verdict"]),
                        # Whether the engine ran other values than the study's.
                        "substituted": study.substituted(row["engine"]) is not None,
                    }
                    for row in results
                ],
                # What the paper's own data say of it.
                "own": source.own_data.get((study.id, name)),
                "points": under(links, results),
                "apart": _apart(claim) if claim else "",
                # How often it was changed after results were seen.
                "changes": len(study.changes_to("claims", name)),
            }
        )
    return cards


def _tests(study: Study, claim: Claim) -> Iterator[tuple[str, str, str]]:
    """Yield each statistic of a claim, and what was expected of it and of its direction."""
    for part in claim.tests():
        (expect, direction), words = conditions(part), wording(study, part)
        less = words.asked(direction) if direction else ""
        yield words.statistic, words.asked(expect), less


def _measured(study: Study, claim: Claim, row: Judged) -> str:
    """Return the statistic on the primary engine in words; empty where it was not measured."""
    value = parse(row["observed"])
    if value is None:
        return ""
    if len(tests := claim.tests()) > 1:
        return f"{round(value * len(tests))} of {len(tests)} parts hold"
    return f"measured {wording(study, tests[0]).value(value)}"


def _apart(claim: Claim) -> str:
    """Return why a claim does not count in the shares; empty where it does."""
    if claim.repeats is not None:
        return f"The same finding as {claim.repeats}: excluded from the counts."
    return ""
