"""The paths of a scenario's flows, as directions of its links."""

from __future__ import annotations

from replication.engines.routing import Routes
from replication.study.link import Link
from replication.study.scenario import Scenario


class FlowPaths:
    """The routes of a scenario, between its nodes by name."""

    def __init__(self, scenario: Scenario) -> None:
        self._links = scenario.links
        self._place = {name: number for number, name in enumerate(scenario.nodes)}
        ends = [(self._place[link.a], self._place[link.b]) for link in scenario.links]
        self._routes = Routes(len(self._place), ends)

    def hops(self, source: str, destination: str) -> list[int]:
        """Return the hops from one node to another, as `Routes` numbers them."""
        return self._routes.path(self._place[source], self._place[destination])

    def links(self, source: str, destination: str) -> list[tuple[Link, str]]:
        """Return the links from one node to another, each with the direction: ab or ba."""
        hops = self.hops(source, destination)
        return [(self._links[hop // 2], "ba" if hop % 2 else "ab") for hop in hops]
