"""Routes with the fewest hops; the earlier link of the scenario wins a tie."""

from __future__ import annotations

from collections import deque

from fields import refuse
from scenario import Scenario

#: A packet's time to live leaves room for this many links.
MOST_HOPS = 250


class Routes:
    """Where each node sends what is for a destination."""

    def __init__(self, scenario: Scenario) -> None:
        self._directions = scenario.directions
        self._out: list[list[int]] = [[] for _ in scenario.nodes]
        for index, direction in enumerate(scenario.directions):
            self._out[direction.source].append(index)
        self._hops: dict[int, list[int]] = {}

    def path(self, source: int, destination: int) -> list[int]:
        """Return the link directions from one node to another, empty if there is no way."""
        hops = self._hops_to(destination)
        path: list[int] = []
        at = source
        while at != destination:
            if hops[at] < 0 and len(self._out[at]) != 1:
                return []
            index = self._next(at, destination, hops)
            if index < 0:
                return []
            path.append(index)
            at = self._directions[index].target
        return path

    def _next(self, at: int, destination: int, hops: list[int]) -> int:
        out = self._out[at]
        if len(out) == 1:
            target = self._directions[out[0]].target
            return out[0] if target == destination or hops[target] >= 0 else -1
        for index in out:
            if hops[self._directions[index].target] == hops[at] - 1:
                return index
        return -1

    def _hops_to(self, destination: int) -> list[int]:
        """Return the hops from every node; hosts on a single link are left at -1."""
        known = self._hops.get(destination)
        if known is not None:
            return known
        hops = [-1] * len(self._out)
        hops[destination] = 0
        waiting = deque([destination])
        while waiting:
            at = waiting.popleft()
            # Links are duplex: who can be reached from here can reach here.
            for index in self._out[at]:
                target = self._directions[index].target
                if hops[target] < 0 and len(self._out[target]) > 1:
                    hops[target] = hops[at] + 1
                    waiting.append(target)
        self._hops[destination] = hops
        return hops


def find_paths(scenario: Scenario) -> list[tuple[list[int], list[int]]]:
    """Return each flow's path there, and that of its acknowledgements back."""
    routes = Routes(scenario)
    paths = []
    for i, flow in enumerate(scenario.flows):
        there = routes.path(flow.source, flow.destination)
        back = routes.path(flow.destination, flow.source) if flow.kind == "tcp" else []
        if not there or len(there) > MOST_HOPS or len(back) > MOST_HOPS:
            what = f"{len(there)} links away" if there else "out of reach"
            refuse(
                f"flows[{i}]: flow {flow.id}",
                f"destination '{scenario.nodes[flow.destination]}' is {what}",
                f"join it to '{scenario.nodes[flow.source]}' by at most {MOST_HOPS} links",
            )
        paths.append((there, back))
    return paths
