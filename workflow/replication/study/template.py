"""Templates: build a scenario from an experiment's topology, flows and parameter values.

configs/README.md describes their grammar ("Topology and flows"). No text is evaluated as code.
"""

import functools
import itertools
import math
import operator
import re
from collections.abc import Callable, Collection, Iterator
from difflib import get_close_matches
from typing import Any, Self

import numpy as np
from pydantic import ValidationError, model_validator

from replication.base.errors import (
    InputError,
    Place,
    Problem,
    cut,
    describe,
    in_one_line,
    problems,
    quoted,
)
from replication.base.files import digest_of, read_number
from replication.base.model import Document, Interval, PositiveSeconds, Seconds, no_such_key
from replication.study.scenario import CbrFlow, Scenario, TcpFlow
from replication.study.study import Experiment

_MOST_COPIES = 10_000
#: Most values of a scenario's templates with their references replaced; and the largest number.
_MOST_VALUES, _LARGEST = 1_000_000, 1e308
#: Most problems of a scenario whose places are looked up.
_MOST_PROBLEMS = 100
#: A reference to a parameter.
REFERENCE = re.compile(r"\$([a-z0-9][a-z0-9_.-]*)")
_PLUS = re.compile(r"\s\+\s")
_JITTER_STEP_S = 1e-6
_FLOWS: dict[str, type[Document]] = {"tcp": TcpFlow, "cbr": CbrFlow}


class TemplateError(InputError):
    """A template has an unknown reference, or does not give a valid scenario.

    Its place is in the study. One that starts with `$name` is in the value of a parameter.
    """

    def under(self, *place: str | int, words: str = "") -> Self:
        """Return the error with its place in a surrounding template, if it is not a parameter's."""
        is_parameters = str((*(self.place or ()), "")[0]).startswith("$")
        return super().under(*(() if is_parameters else place), words=words)


def each_text(value: Any, change: Callable[[str], Any]) -> Any:
    """Return plain data with `change` applied to each text that is not a key."""
    if isinstance(value, dict):
        return {key: each_text(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [each_text(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def resolve(value: Any, parameters: dict[str, Any]) -> Any:
    """Return `value` with its references replaced; TemplateError for an unknown one."""
    return _Values(parameters).of(value)


def expand(entries: list[Any], parameters: dict[str, Any]) -> list[Any]:
    """Resolve `entries`, and copy those with ``repeat``; TemplateError as for `resolve`."""
    return _Values(parameters).expanded(entries)


class _Values:
    """Parameters' values; each is resolved once, and the number of values is limited."""

    def __init__(self, parameters: dict[str, Any]) -> None:
        self._parameters = parameters
        self._known: dict[str, tuple[Any, int]] = {}
        self._trail: list[str] = []
        self._count = 0

    def of(self, value: Any) -> Any:
        """Return `value` with its references replaced."""
        if isinstance(value, str):
            return self._of_text(value) if "$" in value else value
        if isinstance(value, dict):
            self._add(len(value))
            return {key: self.part(key, item) for key, item in value.items()}
        if isinstance(value, list):
            self._add(len(value))
            return [self.part(number, item) for number, item in enumerate(value)]
        return value

    def expanded(self, entries: list[Any], *place: str) -> list[Any]:
        """Return `entries`, which are at `place`, resolved and with their copies."""
        return list(itertools.chain.from_iterable(self.copies(entries, *place)))

    def copies(self, entries: list[Any], *place: str) -> list[list[Any]]:
        """Return the copies of each entry: one, or as many as its `repeat` says."""
        groups = []
        for number, entry in enumerate(entries):
            try:
                groups.append(self._copies(entry))
            except TemplateError as error:
                raise error.under(*place, number) from None
        return groups

    def _copies(self, entry: Any) -> list[Any]:
        if isinstance(entry, dict) and "repeat" in entry:
            count = self.part("repeat", entry["repeat"])
            is_whole = isinstance(count, int) and not isinstance(count, bool)
            if not is_whole or not 1 <= count <= _MOST_COPIES:
                text = f"repeat must be from 1 to {_MOST_COPIES}, not {quoted(count)}"
                raise TemplateError(text, ("repeat",))
            body = {key: item for key, item in entry.items() if key != "repeat"}
            made = [self.of(_numbered(body, str(i))) for i in range(1, count + 1)]
        else:
            made = [self.of(entry)]
        return [e["id"] if isinstance(e, dict) and e.keys() == {"id"} else e for e in made]

    def part(self, key: str | int, item: Any) -> Any:
        """Return the value of a key with its references replaced."""
        try:
            return self.of(item)
        except TemplateError as error:
            raise error.under(key) from None

    def _add(self, count: int) -> None:
        self._count += count
        if self._count > _MOST_VALUES:
            raise TemplateError(
                f"references and copies give more than {_MOST_VALUES} values; use fewer", ()
            )

    def _of_text(self, text: str) -> Any:
        return self._reference(text[1:]) if REFERENCE.fullmatch(text) else self._sum(text)

    def _reference(self, name: str) -> Any:
        if name in self._known:
            value, size = self._known[name]
            self._add(size)
            return value
        if name in self._trail:
            circle = cut(" -> ".join((*self._trail, name)), 100)
            raise TemplateError(f"circular reference: {circle}", ())
        if name not in self._parameters:
            near = get_close_matches(name, self._parameters, 1)
            nearest = f"; nearest: ${near[0]}" if near else ""
            unknown = f"unknown parameter {cut('$' + name, 60)}{nearest}"
            raise TemplateError(f"{unknown}; declare it under parameters", ())
        before = self._count
        self._trail.append(name)
        try:
            value = self.of(self._parameters[name])
        except TemplateError as error:
            raise error.under(f"${name}") from None
        self._trail.pop()
        self._known[name] = value, self._count - before
        return value

    def _sum(self, text: str) -> Any:
        terms = []
        for term in _PLUS.split(text):
            terms.append([self._operand(part.strip(), text) for part in term.split("*")])
        operands = list(itertools.chain.from_iterable(terms))
        if None in operands:
            return None
        for number in operands:
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise TemplateError(f"{quoted(text)}: {quoted(number)} is not a number", ())
        try:
            number = functools.reduce(operator.add, map(math.prod, terms))
        except OverflowError:
            number = math.inf
        if not -_LARGEST <= number <= _LARGEST:
            raise TemplateError(f"{quoted(text)}: the number is too large", ())
        return number

    def _operand(self, part: str, text: str) -> Any:
        if REFERENCE.fullmatch(part):
            return self._reference(part[1:])
        if (number := read_number(part)) is None:
            raise TemplateError(
                f"{quoted(part)} in {quoted(text)} is no number or parameter; write $name, $a * $b "
                "or $a + $b",
                (),
            )
        return number


def _numbered(entry: Any, number: str) -> Any:
    return each_text(entry, lambda text: text.replace("{i}", number))


def whole_flow(entry: dict[str, Any], parameters: Collection[str]) -> dict[str, Any]:
    """Return a flow's template in which missing keys refer to the parameters of their names."""
    model = _FLOWS.get(entry.get("kind", ""))
    keys = (*model.model_fields, "start_jitter_s") if model else ()
    return {key: f"${key}" for key in keys if key in parameters} | entry


def replicate_seed(study: str, experiment: str, replicate: int) -> int:
    """Return the seed of a replicate, which all points of an experiment share."""
    digest = digest_of(f"{study}/{experiment}/{replicate}".encode())
    return int(digest[:8], 16) % (2**31 - 2) + 1


def instantiate(
    experiment: Experiment,
    parameters: dict[str, Any],
    seed: int,
    duration_limit_s: float | None = None,
) -> Scenario:
    """Build the scenario of one point and replicate; TemplateError if it is not valid.

    `parameters` are the values at the point. `duration_limit_s` shortens the run; flows stop no
    later than its end.
    """
    template = _Template(experiment, parameters)
    try:
        return template.scenario(seed, duration_limit_s)
    except TemplateError as error:
        where = "experiments", experiment.id
        raise error.under(*where, words=f"experiment {experiment.id}") from None


class _Template:
    """The templates of an experiment at a point."""

    def __init__(self, experiment: Experiment, parameters: dict[str, Any]) -> None:
        topology = experiment.topology
        self._values = _Values(parameters)
        self._parameters = parameters
        self._single = {
            "duration_s": experiment.duration_s,
            "sampling_interval_s": experiment.sampling_interval_s,
            "host": experiment.host or {},
        }
        self._flows = [whole_flow(entry, parameters) for entry in experiment.flows]
        self._topology: dict[str, list[Any]] = {
            "nodes": topology.nodes,
            "links": list(topology.links),
            "monitors": list(topology.monitors),
        }

    def scenario(self, seed: int, duration_limit_s: float | None) -> Scenario:
        """Return the scenario; the place of an error is in the experiment."""
        document: dict[str, Any] = {"seed": seed}
        try:
            for key, template in self._single.items():
                document[key] = self._values.part(key, template)
            length_s = _Length(duration_s=document["duration_s"]).duration_s
            if duration_limit_s is not None:
                length_s = min(length_s, duration_limit_s)
            document["duration_s"] = length_s
            for key, entries in self._topology.items():
                document[key] = self._values.expanded(entries, "topology", key)
            copies = self._values.copies(self._flows, "flows")
            document["flows"] = [*self._placed_in_time(copies, length_s, seed)]
            return Scenario.model_validate(document)
        except ValidationError as error:
            # Copies of an entry have the problems of its template, which are told once.
            distinct: dict[tuple[Place, str], Problem] = {}
            for problem in problems(error, document)[:_MOST_PROBLEMS]:
                distinct.setdefault((self._origin(problem.place), problem.text), problem)
            place, _ = next(iter(distinct))
            raise TemplateError(in_one_line([*distinct.values()]), place) from None
        except TemplateError:
            raise
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise TemplateError(f"the template is malformed: {error}", ()) from None

    def _placed_in_time(
        self, copies: list[list[dict[str, Any]]], duration_s: float, seed: int
    ) -> Iterator[dict[str, Any]]:
        """Draw each flow's start, and limit its stop to the run's end."""
        generator = np.random.Generator(np.random.PCG64(seed))
        # A second generator, so that draws of gaps do not change those of jitter.
        gaps = np.random.Generator(np.random.PCG64([seed, 1]))
        for number, group in enumerate(copies):
            behind_s = 0.0
            for copy, flow in enumerate(group):
                given = {key: flow[key] for key in _Times.model_fields if key in flow}
                try:
                    times = _Times.model_validate(given)
                except ValidationError as error:
                    raise self._wrong_times(number, flow, error) from None
                if copy:
                    behind_s += float(gaps.uniform(*times.start_gap_s))
                # One draw per flow, used or not, so that jitter of one flow does not change others.
                draw = float(generator.random())
                start_s = times.start_s + behind_s
                start_s += round(draw * times.start_jitter_s / _JITTER_STEP_S) * _JITTER_STEP_S
                stop_s = duration_s if times.stop_s is None else times.stop_s
                rest = {key: value for key, value in flow.items() if key not in given}
                yield rest | {"start_s": round(start_s, 6), "stop_s": min(stop_s, duration_s)}

    def _wrong_times(
        self, number: int, flow: dict[str, Any], error: ValidationError
    ) -> TemplateError:
        named = f"flow {cut(str(flow.get('id')), 64)}"
        model = _FLOWS.get(str(flow.get("kind")))
        known = [*model.model_fields, *_Times.model_fields] if model else [*flow]
        # A misspelt key is better named than the key that it leaves out.
        for key in flow:
            if key not in known:
                text = f"{named}: {cut(key, 64)}: {no_such_key(key, known)}"
                return TemplateError(text, ("flows", number, key))
        first = problems(error, flow)[0].place[:1]
        place = self._followed(self._flows[number], ("flows", number), first)
        return TemplateError(f"{named}: {describe(error, flow)}", place)

    def _origin(self, place: Place) -> Place:
        """Return where the file has a value of the scenario: in the experiment, or a parameter."""
        if not place or place[0] in self._single:
            return self._followed(self._single, (), place)
        name, entry, *rest = (*place, 0) if len(place) == 1 else place
        where: Place = ("flows",) if name == "flows" else ("topology", name)
        templates = self._flows if name == "flows" else self._topology.get(str(name), [])
        before = 0
        for number, copies in enumerate(self._values.copies(templates)):
            ids = [copy.get("id") if isinstance(copy, dict) else copy for copy in copies]
            before += len(copies)
            if entry in ids or (isinstance(entry, int) and entry < before):
                return self._followed(templates[number], (*where, number), tuple(rest))
        return where

    def _followed(self, template: Any, place: Place, rest: Place) -> Place:
        """Return the place of `rest` in a template at `place`, or in the parameter behind it."""
        for number, key in enumerate(rest):
            if isinstance(template, str):
                return self._referred(template, place, rest[number:])
            try:
                template = template[key]
            except (LookupError, TypeError):
                return place
            place = (*place, key)
        return self._referred(template, place, ()) if isinstance(template, str) else place

    def _referred(self, text: str, place: Place, rest: Place) -> Place:
        """Return the place of `rest` in the only parameter that a text refers to, else `place`."""
        names = set(REFERENCE.findall(text))
        if len(names) != 1:
            return place
        (name,) = names
        return self._followed(self._parameters.get(name), (f"${name}",), rest)


class _Length(Document):
    duration_s: PositiveSeconds


class _Times(Document):
    start_s: Seconds
    start_jitter_s: Seconds = 0.0
    start_gap_s: Interval = (0.0, 0.0)
    stop_s: Seconds | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not 0 <= self.start_gap_s[0] <= self.start_gap_s[1]:
            raise ValueError("start_gap_s must be [low, high] in s")
        return self
