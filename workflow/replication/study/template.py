"""Templates: turns an experiment's topology and flows plus parameter values into a scenario.

Grammar (no code, no evaluation of text):

- ``$name`` is the value of a parameter; a value may itself refer to others.
- ``"$a * $b"`` and ``"$a * 0.5"`` are products, ``"$a + 30"`` and ``"$a * $b + $c"`` are sums,
  whose plus sign stands between spaces; null in one makes it null.
- An entry (node, link, flow, monitor) with ``repeat: $n`` stands for n copies, in whose texts
  ``{i}`` is 1..n.
- A flow's ``start_jitter_s`` is the width of the uniform start delay drawn for each replicate.
- A repeated flow's ``start_gap_s``, ``[low, high]``, starts each copy a uniform draw after the
  last, anew for each replicate: the copies keep their order.
- A flow's ``stop_after_s``, in the place of ``stop_s``, counts from its start, with what is drawn.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import operator
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import ConfigDict, Strict, TypeAdapter, ValidationError

from replication.study.errors import InputError, describe
from replication.study.model import Seconds
from replication.study.scenario import Scenario
from replication.study.storage.yaml_document import read_number
from replication.study.study import Experiment

#: Most values that the templates make of one scenario: a thousand flows with a link each are
#: some fifty thousand.
MOST_VALUES = 200_000
#: Most parameters and brackets around a value.
MOST_STEPS = 50
#: No rate, size or count of packets comes near it.
LARGEST = 1e18
_NAME = re.compile(r"\$[a-z0-9][a-z0-9_.-]*")
_PLUS = re.compile(r"\s\+\s")
_JITTER_STEP_S = 1e-6
_GAP = TypeAdapter[tuple[float, float]](Annotated[tuple[Seconds, Seconds], Strict(False)])
_SECONDS: TypeAdapter[float] = TypeAdapter(Seconds, config=ConfigDict(strict=True))


class TemplateError(InputError):
    """A template refers to something that is not there, or does not give a valid scenario."""


def resolve(value: Any, parameters: dict[str, Any]) -> Any:
    """Return `value` with every reference replaced.

    Raises
    ------
    TemplateError
        An unknown parameter, a circular reference, a product or sum of something not a number, or
        more than `Resolver` allows.
    """
    return Resolver(parameters).resolve(value)


def expand(entries: list[Any], parameters: dict[str, Any]) -> list[Any]:
    """Resolve `entries` and unroll those with ``repeat``; TemplateError as for `resolve`."""
    return Resolver(parameters).expand(entries)


@dataclass(frozen=True)
class _Part:
    """A resolved value, how many values it holds and how deep they are nested."""

    value: Any
    size: int = 1
    height: int = 0


class Resolver:
    """Puts parameter values into templates, each parameter resolved once.

    What comes out is counted before it is copied anywhere: references that double twenty times are
    a few lines in a file and a million values in a scenario.

    Parameters
    ----------
    parameters : dict
        Parameter values; they may refer to each other.

    Attributes
    ----------
    size : int
        Values resolved so far, everything that a reference stands for counted where it stands.
    """

    def __init__(self, parameters: dict[str, Any]) -> None:
        self.size = 0
        self._parameters = parameters
        self._known: dict[str, _Part] = {}
        #: What each known parameter stands on, and what has been looked up since `expand_again`.
        self._needs: dict[str, set[str]] = {}
        self._looked_up: set[str] = set()

    def resolve(self, value: Any) -> Any:
        """Return `value` with every reference replaced."""
        part = self._part(value, ())
        self._grow(part.size)
        return part.value

    def expand(self, entries: list[Any]) -> list[Any]:
        """Resolve `entries` and unroll those with ``repeat``."""
        expanded: list[Any] = []
        for entry in entries:
            if not (isinstance(entry, dict) and "repeat" in entry):
                expanded.append(self.resolve(entry))
                continue
            count = self.resolve(entry["repeat"])
            if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 10000:
                raise TemplateError(f"repeat must be a whole number from 1 to 10000, not {count!r}")
            body = {key: item for key, item in entry.items() if key != "repeat"}
            for i in range(1, count + 1):
                expanded.append(self.resolve(_numbered(body, i)))
        return [e["id"] if isinstance(e, dict) and e.keys() == {"id"} else e for e in expanded]

    def expand_again(self, memory: Memory, name: str, entries: list[Any]) -> list[Any]:
        """Expand `entries`, or take what `memory` has of this name if nothing of it has changed."""
        remembered = memory.get(name)
        if remembered is not None and remembered.holds(self._parameters):
            self._grow(remembered.size)
            return remembered.expanded
        before, self._looked_up = self.size, set()
        expanded = self.expand(entries)
        used = {needed: self._parameters[needed] for needed in self._looked_up}
        memory[name] = _Remembered(used, expanded, self.size - before)
        return expanded

    def _grow(self, size: int) -> None:
        self.size += size
        if self.size > MOST_VALUES:
            raise TemplateError(
                f"the templates make {self.size} values of one scenario, more than {MOST_VALUES}; "
                "repeat less, or refer to less"
            )

    def _part(self, value: Any, trail: tuple[str, ...]) -> _Part:
        # `trail` holds a name for each parameter and each bracket around the value.
        if len(trail) > MOST_STEPS:
            names = [name for name in trail if name]
            raise TemplateError(
                f"references nest deeper than {MOST_STEPS} steps: ${' -> $'.join(names[:4])} ..."
            )
        if isinstance(value, dict):
            parts = {key: self._part(item, (*trail, "")) for key, item in value.items()}
            return _joined({key: part.value for key, part in parts.items()}, parts.values())
        if isinstance(value, list):
            items = [self._part(item, (*trail, "")) for item in value]
            return _joined([part.value for part in items], items)
        if not isinstance(value, str) or "$" not in value:
            return _Part(value)
        terms = [[part.strip() for part in term.split("*")] for term in _PLUS.split(value)]
        if len(terms) == len(terms[0]) == 1:
            return self._lookup(terms[0][0], trail)
        products = [
            _combined(value, operator.mul, [self._operand(part, trail) for part in term])
            for term in terms
        ]
        return _Part(_combined(value, operator.add, products))

    def _operand(self, text: str, trail: tuple[str, ...]) -> Any:
        if text.startswith("$"):
            return self._lookup(text, trail).value
        number = read_number(text)
        if number is None:
            raise TemplateError(
                f"{text!r} in a product or sum is neither a number nor a $parameter"
            )
        return number

    def _lookup(self, text: str, trail: tuple[str, ...]) -> _Part:
        if not _NAME.fullmatch(text):
            raise TemplateError(
                f"{text!r} is not a parameter reference; write $name, $a * $b or $a + $b"
            )
        name = text[1:]
        if name in trail:
            names = [step for step in (*trail, name) if step]
            raise TemplateError(f"circular reference: {' -> '.join(names)}")
        if name not in self._parameters:
            raise TemplateError(f"unknown parameter ${name}; declare it under parameters")
        if name not in self._known:
            outside, self._looked_up = self._looked_up, {name}
            self._known[name] = self._part(self._parameters[name], (*trail, name))
            self._needs[name], self._looked_up = self._looked_up, outside
        self._looked_up |= self._needs[name]
        part = self._known[name]
        if len(trail) + part.height > MOST_STEPS:
            raise TemplateError(f"${name} nests brackets deeper than {MOST_STEPS} steps here")
        return part


@dataclass(frozen=True)
class _Remembered:
    """Expanded entries, the parameters that they were made of, and how many values they hold."""

    used: dict[str, Any]
    expanded: list[Any]
    size: int

    def holds(self, parameters: dict[str, Any]) -> bool:
        """Return whether the parameters have the same values still, of the same types."""
        return all(
            name in parameters and _same(parameters[name], then) for name, then in self.used.items()
        )


#: What was expanded last, by name: of the replicates of a point only what is drawn differs.
Memory = dict[str, _Remembered]


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    # Of what holds others, 1 and 1.0 would be equal.
    return type(one) is type(other) and isinstance(one, str | int | float) and bool(one == other)


def _joined(value: Any, parts: Collection[_Part]) -> _Part:
    """Return a dict or list of resolved values as one; TemplateError where it holds too many."""
    size = 1 + sum(part.size for part in parts)
    if size > MOST_VALUES:
        raise TemplateError(
            f"references make {size} values of one, more than {MOST_VALUES}; refer to less"
        )
    return _Part(value, size, 1 + max((part.height for part in parts), default=0))


def _combined(text: str, operation: Callable[[Any, Any], Any], operands: list[Any]) -> Any:
    """Return the product or sum of `operands`, null if one is; `text` is what to call it."""
    if any(operand is None for operand in operands):
        return None
    for operand in operands:
        if isinstance(operand, bool) or not isinstance(operand, int | float):
            raise TemplateError(f"{text!r}: {operand!r} is not a number")
    for found in itertools.accumulate(operands, operation):
        # Not a number fails this too.
        if not abs(found) <= LARGEST:
            raise TemplateError(f"{text!r} is beyond {LARGEST:g}: no quantity is so large")
    return found


def _numbered(value: Any, i: int) -> Any:
    if isinstance(value, dict):
        return {key: _numbered(item, i) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbered(item, i) for item in value]
    return value.replace("{i}", str(i)) if isinstance(value, str) else value


def replicate_seed(study: str, experiment: str, replicate: int) -> int:
    """Return the seed of a replicate; points of an experiment share it (common random numbers)."""
    digest = hashlib.sha256(f"{study}/{experiment}/{replicate}".encode()).digest()
    return int.from_bytes(digest[:4], "big") % (2**31 - 2) + 1


def instantiate(
    experiment: Experiment,
    parameters: dict[str, Any],
    seed: int,
    duration_limit_s: float | None = None,
) -> Scenario:
    """Build the scenario of one point and replicate: `fill`, then `place`."""
    return place(fill(experiment, parameters), seed, duration_limit_s)


@dataclass(frozen=True)
class FilledExperiment:
    """An experiment with the values of one point in it: a scenario without a seed.

    Attributes
    ----------
    experiment : str
        The experiment's id, for messages.
    document : dict
        The scenario's fields; flows have their jitter and gaps still to be drawn.
    firsts : frozenset of int
        Places of the flows that are the first of their entry.
    size : int
        Values in the document.
    """

    experiment: str
    document: dict[str, Any]
    firsts: frozenset[int]
    size: int


def fill(
    experiment: Experiment, parameters: dict[str, Any], memory: Memory | None = None
) -> FilledExperiment:
    """Put a point's parameter values into an experiment's templates.

    Parameters
    ----------
    experiment : Experiment
    parameters : dict
        Parameter values with the point's levels already laid over them.
    memory : Memory, optional
        What the last fill of this experiment left: what has not changed is taken from it.

    Raises
    ------
    TemplateError
        The template does not resolve.
    """
    resolver, memory = Resolver(parameters), {} if memory is None else memory
    topology = experiment.topology
    with _named(experiment.id):
        document = {
            "duration_s": resolver.resolve(experiment.duration_s),
            "sampling_interval_s": resolver.resolve(experiment.sampling_interval_s),
            "nodes": resolver.expand_again(memory, "nodes", topology.nodes),
            "links": resolver.expand_again(memory, "links", list(topology.links)),
            "monitors": resolver.expand_again(memory, "monitors", list(topology.monitors)),
            "host": resolver.resolve(experiment.host),
        }
        copies = [
            resolver.expand_again(memory, f"flow {number}", [entry])
            for number, entry in enumerate(experiment.flows)
        ]
        document["flows"] = [flow for group in copies for flow in group]
        firsts = frozenset(itertools.accumulate((len(group) for group in copies), initial=0))
    return FilledExperiment(experiment.id, document, firsts, resolver.size)


def place(filled: FilledExperiment, seed: int, duration_limit_s: float | None = None) -> Scenario:
    """Return the scenario of a point and a seed.

    Parameters
    ----------
    filled : FilledExperiment
    seed : int
        Seeds the start jitter and every random element of the run.
    duration_limit_s : float, optional
        Shorter runs for a first look; flows stop no later than the end.

    Raises
    ------
    TemplateError
        The result is not a valid scenario.
    """
    with _named(filled.experiment):
        duration_s = _seconds(filled.document, "duration_s")
        if duration_limit_s is not None:
            duration_s = min(duration_s, duration_limit_s)
        flows = [dict(flow) for flow in filled.document["flows"]]
        _place_in_time(flows, filled.firsts, duration_s, seed)
        changed = {"seed": seed, "duration_s": duration_s, "flows": flows}
        return Scenario.model_validate(filled.document | changed)


@contextlib.contextmanager
def _named(experiment: str) -> Iterator[None]:
    """Turn what goes wrong with a template into a TemplateError that names the experiment."""
    where = f"experiment {experiment}"
    try:
        yield
    except ValidationError as error:
        raise TemplateError(f"{where}: {describe(error)}") from None
    except TemplateError as error:
        raise TemplateError(f"{where}: {error}") from None
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise TemplateError(f"{where}: the template is malformed: {error}") from None


def _place_in_time(
    flows: list[dict[str, Any]], firsts: frozenset[int], duration_s: float, seed: int
) -> None:
    """Draw each flow's start and cut its stop to the run's end."""
    generator = np.random.Generator(np.random.PCG64(seed))
    # Another generator, so that gaps move no jitter.
    gaps = np.random.Generator(np.random.PCG64([seed, 1]))
    behind_s = 0.0
    for number, flow in enumerate(flows):
        low, high = _gap_s(flow)
        behind_s = 0.0 if number in firsts else behind_s + float(gaps.uniform(low, high))
        # A draw per flow, used or not, so that adding jitter to one flow moves no other.
        draw = float(generator.random())
        jitter_s = _seconds(flow, "start_jitter_s", 0.0)
        flow.pop("start_jitter_s", None)
        start_s = _seconds(flow, "start_s") + behind_s
        start_s += round(draw * jitter_s / _JITTER_STEP_S) * _JITTER_STEP_S
        flow["start_s"] = round(start_s, 6)
        flow["stop_s"] = min(_stop_s(flow, duration_s), duration_s)


def _stop_s(flow: dict[str, Any], duration_s: float) -> float:
    """Take from a flow that has its start when it stops; the run's end if it does not say."""
    if "stop_after_s" not in flow:
        return _seconds(flow, "stop_s", duration_s)
    if "stop_s" in flow:
        raise TemplateError(
            f"flow {flow['id']}: has stop_s and stop_after_s; keep the one that the paper gives"
        )
    active_s = _seconds(flow, "stop_after_s")
    del flow["stop_after_s"]
    return round(float(flow["start_s"]) + active_s, 6)


def _gap_s(flow: dict[str, Any]) -> tuple[float, float]:
    """Take a flow's gap from it; TemplateError, with its name, where that is no interval."""
    gap = flow.pop("start_gap_s", (0.0, 0.0))
    with contextlib.suppress(ValidationError):
        low, high = _GAP.validate_python(gap)
        if low <= high:
            return low, high
    raise TemplateError(f"flow {flow['id']}: start_gap_s must be [low, high] in s, not {gap!r}")


def _seconds(document: dict[str, Any], field: str, default: float | None = None) -> float:
    """Return a field that holds a time; TemplateError, with its name, where it holds none."""
    try:
        return _SECONDS.validate_python(document.get(field, default))
    except ValidationError as error:
        where = f"flow {document['id']}: " if "id" in document else ""
        problem = describe(error).removeprefix("(document): ")
        raise TemplateError(f"{where}{field}: {problem}") from None
