"""Which settings of a point the paper prints: those whose values all come from published ones."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Set
from typing import Any

from replication.study.setup import Setup
from replication.study.study import Experiment, Study, parameters_of
from replication.study.template import REFERENCE, expand, whole_flow
from replication.study.variation import values_of

#: A setting of a scenario: `links` or `flows`, an id and a key, and for a queue its own key.
Setting = tuple[str, ...]
#: Keys of a queue's limit.
LIMITS = ("limit_packets", "limit_bytes", "memory_limit_bytes")
_OF_QUEUES = (*LIMITS, "device_queue_packets")
_OF_FLOWS = ("maximum_window_bytes", "initial_ssthresh_bytes")
#: Parameters that only convert a printed number of packets or segments into bytes.
_SIZES = {"segment_bytes", "packet_bytes"}


def printed_settings(
    study: Study, experiment: Experiment, levels: Mapping[str, str], values: Mapping[str, Any]
) -> Set[Setting]:
    """Return the settings that the paper prints at a point under the textbook set-up.

    They are limits of queues, jitter of links, windows and thresholds of flows. `values` are those
    that the levels set.
    """
    point = _Point(study, experiment, levels, values)
    settings: set[Setting] = set()
    for link in experiment.topology.links:
        paths: list[Setting] = [("jitter_s",)]
        paths += itertools.product(("queue_ab", "queue_ba"), _OF_QUEUES)
        settings |= point.printed("links", link, paths)
    for flow in experiment.flows:
        whole = whole_flow(flow, point.values)
        settings |= point.printed("flows", whole, [(key,) for key in _OF_FLOWS])
    return settings


class _Point:
    """The parameters at a point: their values, and which of them the paper prints."""

    def __init__(
        self,
        study: Study,
        experiment: Experiment,
        levels: Mapping[str, str],
        values: Mapping[str, Any],
    ) -> None:
        self.values = values_of(study, experiment, setup=Setup.TEXTBOOK) | dict(values)
        parameters = parameters_of(study, experiment)
        self._published = {name for name in parameters if parameters[name].published}
        self._published -= study.decided(experiment.id).keys()
        for factor in experiment.factors:
            for level in factor.levels:
                if level.key == levels[factor.id]:
                    self._published -= level.set.keys()
                    self._published |= level.set.keys() if factor.published else set()

    def printed(self, part: str, template: Mapping[str, Any], paths: list[Setting]) -> set[Setting]:
        """Return those `paths` of a template that the paper prints, for each of its copies."""
        printed = [path for path in paths if self._is_printed(template, path, False)]
        if not printed:
            return set()
        named = {key: template[key] for key in ("id", "repeat") if key in template}
        settings: set[Setting] = set()
        for name in expand([named], self.values):
            settings |= {(part, str(name), *path) for path in printed}
        return settings

    def _is_printed(self, value: Any, path: Setting, within_published: bool) -> bool:
        """Return whether the value at `path` is printed; `value` may be part of a parameter."""
        names = REFERENCE.findall(value) if isinstance(value, str) else []
        if path:
            if names:
                return self._is_printed(self.values[names[0]], path, names[0] in self._published)
            inner = value.get(path[0]) if isinstance(value, dict) else None
            return inner is not None and self._is_printed(inner, path[1:], within_published)
        numbers = [name for name in names if name not in _SIZES]
        if not numbers:
            return within_published
        for name in numbers:
            if name not in self._published or not self._is_printed(self.values[name], (), True):
                return False
        return True
