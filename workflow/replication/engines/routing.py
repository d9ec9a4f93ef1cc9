"""Routes with the fewest hops; of equal ones the earlier link of the scenario wins."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


class Routes:
    """Paths between nodes, as directions of links: 2 x link, and 1 more for b to a.

    Hosts on a single link are on nobody's way. Leaving them out of the search keeps thousands of
    flows of as many hosts cheap: one search serves all hosts of a router.
    """

    def __init__(self, nodes: int, links: Sequence[tuple[int, int]]) -> None:
        self._target = [end for a, b in links for end in (b, a)]
        self._out: list[list[int]] = [[] for _ in range(nodes)]
        for number, (a, b) in enumerate(links):
            self._out[a].append(2 * number)
            self._out[b].append(2 * number + 1)
        self._core = [
            [hop for hop in out if len(self._out[self._target[hop]]) > 1] for out in self._out
        ]
        self._hops: dict[int, dict[int, int]] = {}

    def path(self, source: int, destination: int) -> list[int]:
        """Return the hops from one node to another, in order; none if there is no way."""
        first = self._only(source)
        if first is not None and self._target[first] == destination:
            return [first]
        last = self._only(destination)
        start = source if first is None else self._target[first]
        end = destination if last is None else self._target[last]
        between = self._between(start, end)
        if between is None:
            return []
        return [
            *([] if first is None else [first]),
            *between,
            *([] if last is None else [last ^ 1]),
        ]

    def _only(self, node: int) -> int | None:
        out = self._out[node]
        return out[0] if len(out) == 1 else None

    def _between(self, start: int, end: int) -> list[int] | None:
        """Return the hops from `start` to `end`, neither of which is a host on a single link."""
        hops = self._hops_to(end)
        path: list[int] = []
        at = start
        while at != end:
            if at not in hops:
                return None
            wanted = hops[at] - 1
            path.append(next(h for h in self._core[at] if hops.get(self._target[h]) == wanted))
            at = self._target[path[-1]]
        return path

    def _hops_to(self, end: int) -> dict[int, int]:
        """Return how many hops each node in the core is away from `end`."""
        if end not in self._hops:
            hops, waiting = {end: 0}, deque([end])
            while waiting:
                at = waiting.popleft()
                # Links are duplex: who can be reached from here can reach here.
                for hop in self._core[at]:
                    target = self._target[hop]
                    if target not in hops:
                        hops[target] = hops[at] + 1
                        waiting.append(target)
            self._hops[end] = hops
        return self._hops[end]
