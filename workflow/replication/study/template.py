"""Templates: build a scenario from an experiment's topology, flows and parameter values.

configs/README.md describes their grammar ("Topology and flows"). No text is evaluated as code.
"""

import functools
import itertools
import math
import operator
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, Self

import numpy as np
from pydantic import ValidationError, model_validator

from replication.study.errors import InputError, describe
from replication.study.files import digest_of, read_number
from replication.study.model import Document, Interval, PositiveSeconds, Seconds
from replication.study.scenario import CbrFlow, Scenario, TcpFlow
from replication.study.study import Experiment

_MOST_COPIES = 10_000
#: A reference to a parameter.
REFERENCE = re.compile(r"\$([a-z0-9][a-z0-9_.-]*)")
_PLUS = re.compile(r"\s\+\s")
_JITTER_STEP_S = 1e-6
_FLOWS: dict[str, type[Document]] = {"tcp": TcpFlow, "cbr": CbrFlow}


class TemplateError(InputError):
    """A template has an unknown reference, or does not give a valid scenario."""


def each_text(value: Any, change: Callable[[str], Any]) -> Any:
    """Return plain data with `change` applied to each text that is not a key."""
    if isinstance(value, dict):
        return {key: each_text(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [each_text(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def resolve(value: Any, parameters: dict[str, Any], trail: tuple[str, ...] = ()) -> Any:
    """Return `value` with its references replaced; TemplateError for an unknown one.

    `trail` lists the references that led to `value`.
    """

    def resolved(text: str) -> Any:
        if "$" not in text:
            return text
        if not REFERENCE.fullmatch(text):
            return _sum_of_products(text, parameters, trail)
        name = text[1:]
        if name in trail:
            raise TemplateError(f"circular reference: {' -> '.join((*trail, name))}")
        if name not in parameters:
            raise TemplateError(f"unknown parameter ${name}; declare it under parameters")
        return resolve(parameters[name], parameters, (*trail, name))

    return each_text(value, resolved)


def _sum_of_products(text: str, parameters: dict[str, Any], trail: tuple[str, ...]) -> Any:
    terms = [
        [_operand(part.strip(), parameters, trail) for part in term.split("*")]
        for term in _PLUS.split(text)
    ]
    operands = list(itertools.chain.from_iterable(terms))
    if None in operands:
        return None
    for number in operands:
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise TemplateError(f"{text!r}: {number!r} is not a number")
    try:
        return functools.reduce(operator.add, map(math.prod, terms))
    except OverflowError:
        raise TemplateError(f"{text!r}: the number is too large") from None


def _operand(text: str, parameters: dict[str, Any], trail: tuple[str, ...]) -> Any:
    if REFERENCE.fullmatch(text):
        return resolve(text, parameters, trail)
    if (number := read_number(text)) is None:
        raise TemplateError(f"{text!r} is no number or parameter; write $name, $a * $b or $a + $b")
    return number


def expand(entries: list[Any], parameters: dict[str, Any]) -> list[Any]:
    """Resolve `entries`, and copy those with ``repeat``; TemplateError as for `resolve`."""
    expanded: list[Any] = []
    for entry in entries:
        if not (isinstance(entry, dict) and "repeat" in entry):
            expanded.append(resolve(entry, parameters))
            continue
        count = resolve(entry["repeat"], parameters)
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= _MOST_COPIES:
            raise TemplateError(f"repeat must be from 1 to {_MOST_COPIES}, not {count!r}")
        body = {key: item for key, item in entry.items() if key != "repeat"}
        expanded += [resolve(_numbered(body, str(i)), parameters) for i in range(1, count + 1)]
    return [e["id"] if isinstance(e, dict) and e.keys() == {"id"} else e for e in expanded]


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
    topology = experiment.topology
    where, document = f"experiment {experiment.id}", dict[str, Any]()
    try:
        duration_s = _Length(duration_s=resolve(experiment.duration_s, parameters)).duration_s
        if duration_limit_s is not None:
            duration_s = min(duration_s, duration_limit_s)
        copies = [expand([whole_flow(entry, parameters)], parameters) for entry in experiment.flows]
        document.update(
            seed=seed,
            duration_s=duration_s,
            sampling_interval_s=resolve(experiment.sampling_interval_s, parameters),
            nodes=expand(topology.nodes, parameters),
            links=expand(list(topology.links), parameters),
            monitors=expand(list(topology.monitors), parameters),
            host=resolve(experiment.host or {}, parameters),
            flows=list(_placed_in_time(copies, duration_s, seed)),
        )
        return Scenario.model_validate(document)
    except ValidationError as error:
        raise TemplateError(f"{where}: {describe(error, document)}") from None
    except TemplateError as error:
        raise TemplateError(f"{where}: {error}") from None
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise TemplateError(f"{where}: the template is malformed: {error}") from None


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


def _placed_in_time(
    copies: list[list[dict[str, Any]]], duration_s: float, seed: int
) -> Iterator[dict[str, Any]]:
    """Draw each flow's start, and limit its stop to the run's end."""
    generator = np.random.Generator(np.random.PCG64(seed))
    # A second generator, so that draws of gaps do not change those of jitter.
    gaps = np.random.Generator(np.random.PCG64([seed, 1]))
    for group in copies:
        behind_s = 0.0
        for number, flow in enumerate(group):
            given = {key: flow[key] for key in _Times.model_fields if key in flow}
            try:
                times = _Times.model_validate(given)
            except ValidationError as error:
                raise TemplateError(f"flow {flow['id']}: {describe(error)}") from None
            if number:
                behind_s += float(gaps.uniform(*times.start_gap_s))
            # One draw per flow, used or not, so that jitter of one flow does not change others.
            draw = float(generator.random())
            start_s = times.start_s + behind_s
            start_s += round(draw * times.start_jitter_s / _JITTER_STEP_S) * _JITTER_STEP_S
            stop_s = duration_s if times.stop_s is None else times.stop_s
            rest = {key: value for key, value in flow.items() if key not in given}
            yield rest | {"start_s": round(start_s, 6), "stop_s": min(stop_s, duration_s)}
