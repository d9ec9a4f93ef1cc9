"""The values of the textbook set-up at each design point, as a table to read before any run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from replication.design.config import load_study, study_ids
from replication.design.design import TextbookRule, combinations, point_text
from replication.design.textbook import bottlenecks, deep_limit
from replication.study.link import Queue, Red
from replication.study.printed import LIMITS, printed_settings
from replication.study.scenario import canonical_json
from replication.study.setup import Setup
from replication.study.study import Study

#: The table of all studies, below the project's folder.
TEXTBOOK = Path("data/textbook.csv")
TEXTBOOK_COLUMNS = (
    "study",
    "experiment",
    "point",
    "link",
    "product_bytes",
    "buffer_bytes",
    "queue",
    "limit",
    "unit",
    "window_bytes",
    "jitter_s",
    "other_queues_packets",
    "duration_s",
    "decided",
    "printed",
)


def textbook_rows(root: Path) -> Iterator[dict[str, object]]:
    """Yield a row for each monitored queue at each point of the studies with two set-ups."""
    for name in study_ids(root):
        study = load_study(root, name)
        if Setup.TEXTBOOK in study.setups:
            yield from rows_of(study)


def rows_of(study: Study) -> Iterator[dict[str, object]]:
    """Yield the rows of one study."""
    for experiment in study.experiments:
        rule = TextbookRule(study, experiment)
        decided = study.decided(experiment.id)
        for levels, values in combinations(experiment.factors):
            scenario = rule.scenario(levels, values)
            printed = printed_settings(study, experiment, levels, values)
            for queue in bottlenecks(scenario, printed):
                limit, unit = _limit(queue.queue)
                yield {
                    "study": study.id,
                    "experiment": experiment.id,
                    "point": point_text(levels),
                    "link": f"{queue.link.id}:{queue.direction}",
                    "product_bytes": queue.product_bytes,
                    "buffer_bytes": queue.buffer_bytes,
                    "queue": queue.queue.kind,
                    "limit": limit,
                    "unit": unit,
                    "window_bytes": rule.window_bytes,
                    "jitter_s": max(link.jitter_s for link in scenario.links),
                    "other_queues_packets": deep_limit(scenario),
                    "duration_s": scenario.duration_s,
                    "decided": canonical_json(decided) if decided else "",
                    "printed": " ".join(sorted(".".join(setting) for setting in printed)),
                }


def _limit(queue: Queue) -> tuple[int, str]:
    """Return a queue's limit and its unit."""
    values = {key: getattr(queue, key, None) for key in LIMITS}
    key, value = next((key, value) for key, value in values.items() if value is not None)
    if isinstance(queue, Red) and queue.byte_mode:
        return value, f"packets of {queue.mean_packet_bytes} bytes"
    return value, "packets" if key == "limit_packets" else "bytes"
