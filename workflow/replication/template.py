"""Templates: turns an experiment's topology and flows plus parameter values into a scenario.

Grammar (no code, no evaluation of text):

- ``$name`` is the value of a parameter; a value may itself refer to others.
- ``"$a * $b"`` and ``"$a * 0.5"`` are products; a null factor makes the product null.
- An entry (node, link, flow, monitor) with ``repeat: $n`` stands for n copies, in whose texts
  ``{i}`` is 1..n.
- A flow's ``start_jitter_s`` is the width of the uniform start delay drawn for each replicate.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import ValidationError

from replication.errors import InputError, describe
from replication.scenario import Scenario
from replication.study import Experiment

_NAME = re.compile(r"\$[a-z0-9][a-z0-9_.-]*")
_JITTER_STEP_S = 1e-6


class TemplateError(InputError):
    """A template refers to something that is not there, or does not give a valid scenario."""


def resolve(value: Any, parameters: dict[str, Any], trail: tuple[str, ...] = ()) -> Any:
    """Return `value` with every reference replaced.

    Raises
    ------
    TemplateError
        An unknown parameter, a circular reference, or a product of something not a number.
    """
    if isinstance(value, dict):
        return {key: resolve(item, parameters, trail) for key, item in value.items()}
    if isinstance(value, list):
        return [resolve(item, parameters, trail) for item in value]
    if not isinstance(value, str) or "$" not in value:
        return value
    factors = [part.strip() for part in value.split("*")]
    if len(factors) == 1:
        return _lookup(factors[0], parameters, trail)
    return _product(value, [_factor(part, parameters, trail) for part in factors])


def _factor(text: str, parameters: dict[str, Any], trail: tuple[str, ...]) -> Any:
    if text.startswith("$"):
        return _lookup(text, parameters, trail)
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        raise TemplateError(f"{text!r} in a product is neither a number nor a $parameter") from None


def _lookup(text: str, parameters: dict[str, Any], trail: tuple[str, ...]) -> Any:
    if not _NAME.fullmatch(text):
        raise TemplateError(f"{text!r} is not a parameter reference; write $name or $a * $b")
    name = text[1:]
    if name in trail:
        raise TemplateError(f"circular reference: {' -> '.join((*trail, name))}")
    if name not in parameters:
        raise TemplateError(f"unknown parameter ${name}; declare it under parameters")
    return resolve(parameters[name], parameters, (*trail, name))


def _product(text: str, factors: list[Any]) -> Any:
    if any(factor is None for factor in factors):
        return None
    product: Any = 1
    for factor in factors:
        if isinstance(factor, bool) or not isinstance(factor, int | float):
            raise TemplateError(f"{text!r}: {factor!r} is not a number")
        product = product * factor
    return product


def expand(entries: list[Any], parameters: dict[str, Any]) -> list[Any]:
    """Resolve `entries` and unroll those with ``repeat``."""
    expanded: list[Any] = []
    for entry in entries:
        if not (isinstance(entry, dict) and "repeat" in entry):
            expanded.append(resolve(entry, parameters))
            continue
        count = resolve(entry["repeat"], parameters)
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 10000:
            raise TemplateError(f"repeat must be a whole number from 1 to 10000, not {count!r}")
        body = {key: item for key, item in entry.items() if key != "repeat"}
        for i in range(1, count + 1):
            expanded.append(resolve(_numbered(body, i), parameters))
    return [e["id"] if isinstance(e, dict) and e.keys() == {"id"} else e for e in expanded]


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
class Filled:
    """An experiment with the values of one point in it: a scenario without a seed.

    Attributes
    ----------
    experiment : str
        The experiment's id, for messages.
    document : dict
        The scenario's fields; flows have their jitter still to be drawn.
    """

    experiment: str
    document: dict[str, Any]


def fill(experiment: Experiment, parameters: dict[str, Any]) -> Filled:
    """Put a point's parameter values into an experiment's templates.

    Parameters
    ----------
    experiment : Experiment
    parameters : dict
        Parameter values with the point's levels already laid over them.

    Raises
    ------
    TemplateError
        The template does not resolve.
    """
    with _named(experiment.id):
        document = {
            "duration_s": resolve(experiment.duration_s, parameters),
            "sampling_interval_s": resolve(experiment.sampling_interval_s, parameters),
            "nodes": expand(experiment.topology.nodes, parameters),
            "links": expand(list(experiment.topology.links), parameters),
            "monitors": expand(list(experiment.topology.monitors), parameters),
            "flows": expand(list(experiment.flows), parameters),
            "host": resolve(experiment.host, parameters),
        }
    return Filled(experiment.id, document)


def place(filled: Filled, seed: int, duration_limit_s: float | None = None) -> Scenario:
    """Return the scenario of a point and a seed.

    Parameters
    ----------
    filled : Filled
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
        duration = filled.document["duration_s"]
        if duration_limit_s is not None:
            duration = min(float(duration), duration_limit_s)
        flows = [dict(flow) for flow in filled.document["flows"]]
        _place_in_time(flows, duration, seed)
        changed = {"seed": seed, "duration_s": duration, "flows": flows}
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


def _place_in_time(flows: list[dict[str, Any]], duration_s: float, seed: int) -> None:
    """Draw each flow's start and cut its stop to the run's end."""
    generator = np.random.Generator(np.random.PCG64(seed))
    for flow in flows:
        # A draw per flow, used or not, so that adding jitter to one flow moves no other.
        draw = float(generator.random())
        jitter = float(flow.pop("start_jitter_s", 0.0))
        start = float(flow["start_s"]) + round(draw * jitter / _JITTER_STEP_S) * _JITTER_STEP_S
        flow["start_s"] = round(start, 6)
        flow["stop_s"] = min(float(flow.get("stop_s", duration_s)), float(duration_s))
