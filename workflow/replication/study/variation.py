"""Variations: a study with other parameter values; and its assumptions, which may vary."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, JsonValue, model_validator

from replication.base.errors import InputError, check_known
from replication.base.files import digest_of
from replication.base.model import Document, Identifier
from replication.study.parameter import Assumed, Factor, Parameter
from replication.study.setup import Setup
from replication.study.study import Experiment, Study, parameters_of
from replication.study.template import REFERENCE, each_text, whole_flow

#: Placeholder for the number of a variation with a range.
VALUE = "$value"
#: Digits of a value of a range: rounding errors must not change a scenario's hash.
DIGITS = 6

Values = dict[str, JsonValue]
Factors = dict[str, Annotated[float, Field(gt=0)]]


class Range(Document):
    """A range of numbers."""

    low: float
    high: float
    log: bool = False
    """Whether values are equally spaced on a logarithmic axis."""
    whole: bool = False
    """Whether values are whole numbers."""

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError("low must be below high, and above zero with log: true")
        if not math.isfinite(self.high / self.low if self.log else self.high - self.low):
            raise ValueError("low and high are too far apart to compute with")
        return self

    def at(self, share: float, digits: int = DIGITS) -> float:
        """Return the value at `share` of the range, 0 (low) to 1 (high)."""
        if self.log:
            value = self.low * (self.high / self.low) ** share
        else:
            value = self.low + share * (self.high - self.low)
        return round(value) if self.whole else rounded(value, digits)

    def position(self, value: float) -> float:
        """Return the share of the range at a value, 0 (low) to 1 (high); NaN off a log axis."""
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        if value <= 0:
            return math.nan
        return math.log(value / self.low) / math.log(self.high / self.low)


def rounded(value: float, digits: int = DIGITS) -> float:
    """Return a value rounded to significant digits."""
    return float(f"{value:.{digits}g}")


class Variation(Document):
    """Other values for a study; at least one key.

    A parameter of an experiment is named `experiment/name`. Links and flows have the names of the
    templates, or `*` for all.
    """

    defaults: Values = {}
    """Map of parameter to value; a level that sets the parameter has priority."""
    parameters: Values = {}
    """Map of parameter to value, also where a level sets the parameter."""
    levels: dict[Identifier, dict[Identifier, dict[Identifier, JsonValue]]] = {}
    """Map of factor to level to the values that the level sets."""
    links: dict[str, Values] = {}
    """Map of link to changed keys."""
    rate_factor: Factors = {}
    """Map of link to a factor of its rate, for another meaning of a printed unit."""
    delay_factor: Factors = {}
    """Map of link to a factor of its delay."""
    flows: dict[str, Values] = {}
    """Map of flow to changed keys."""

    @model_validator(mode="after")
    def _changes_something(self) -> Variation:
        if self == Variation.model_construct():
            raise ValueError(f"give at least one of {', '.join(Variation.model_fields)}")
        return self

    @property
    def values(self) -> Values:
        """Values of the parameters that the variation sets."""
        return {**self.defaults, **self.parameters}

    def at(self, value: float) -> Variation:
        """Return the variation with `$value` replaced by a number."""
        put = each_text(self.model_dump(), lambda text: value if text == VALUE else text)
        return Variation.model_validate(put)


def apply(study: Study, variation: Variation) -> Study:
    """Return `study` with other values; InputError for an unknown parameter."""
    known = {key for key, _ in parameters(study)}
    for part in ("defaults", "parameters"):
        named = f"study {study.id}: parameter"
        check_known(named, getattr(variation, part), known, (part,))
    return study.model_copy(
        update={
            "parameters": _replaced(study.parameters, variation.values, ""),
            "experiments": [_experiment(old, variation) for old in study.experiments],
        }
    )


def check_variation(study: Study, variation: Variation) -> None:
    """Raise InputError for a name in a variation that the study does not have."""
    apply(study, variation)
    links, flows = {"*"}, {"*"}
    factors: dict[str, set[str]] = defaultdict(set)
    for experiment in study.experiments:
        links |= {str(link["id"]) for link in experiment.topology.links}
        flows |= {str(flow["id"]) for flow in experiment.flows}
        for factor in experiment.factors:
            factors[factor.id] |= {level.key for level in factor.levels}
    for key in ("links", "rate_factor", "delay_factor"):
        check_known(f"{key}: link", getattr(variation, key), links, (key,))
    check_known("flows: flow", variation.flows, flows, ("flows",))
    check_known("levels: factor", variation.levels, factors, ("levels",))
    for name, levels in variation.levels.items():
        check_known(f"levels: level of {name}", levels, factors[name], ("levels", name))


def parameters(study: Study) -> Iterator[tuple[str, Parameter]]:
    """Yield the parameters of a study, and their names in variations; shared ones come first."""
    yield from study.parameters.items()
    for experiment in study.experiments:
        for name, parameter in experiment.parameters.items():
            yield f"{experiment.id}/{name}", parameter


def _replaced(old: Mapping[str, Parameter], values: Values, prefix: str) -> dict[str, Parameter]:
    replaced = dict(old)
    for name, parameter in old.items():
        if prefix + name in values:
            tag = parameter.assumed and parameter.assumed.model_copy(update={"varies": None})
            update = {"value": values[prefix + name], "assumed": tag}
            replaced[name] = parameter.model_copy(update=update)
    return replaced


def _experiment(experiment: Experiment, variation: Variation) -> Experiment:
    prefix = f"{experiment.id}/"
    # A name with its experiment overrides only that experiment's levels.
    fixed = {key.removeprefix(prefix) for key in variation.parameters}
    links = [_link(link, variation) for link in experiment.topology.links]
    flows = [flow | _changes(variation.flows, str(flow["id"])) for flow in experiment.flows]
    update = {
        "parameters": _replaced(experiment.parameters, variation.values, prefix),
        "factors": [_factor(factor, variation, fixed) for factor in experiment.factors],
        "flows": flows,
        "topology": experiment.topology.model_copy(update={"links": links}),
    }
    return experiment.model_copy(update=update)


def _factor(factor: Factor, variation: Variation, fixed: set[str]) -> Factor:
    changes, levels = variation.levels.get(factor.id, {}), []
    for level in factor.levels:
        values = {**level.set, **changes.get(level.key, {})}
        free = {name: value for name, value in values.items() if name not in fixed}
        levels.append(level.model_copy(update={"set": free}))
    return factor.model_copy(update={"levels": levels})


def _link(link: Mapping[str, Any], variation: Variation) -> dict[str, Any]:
    name = str(link["id"])
    changed = {**link, **_changes(variation.links, name)}
    for key, factors in (("rate_bps", variation.rate_factor), ("delay_s", variation.delay_factor)):
        factor = factors.get(name, factors.get("*"))
        if factor is not None:
            value = changed[key]
            changed[key] = f"{value} * {factor:g}" if isinstance(value, str) else value * factor
    return changed


def _changes(changes: Mapping[str, Values], name: str) -> Values:
    """Return the changes to a link or flow, those to all of them first."""
    return {**changes.get("*", {}), **changes.get(name, {})}


#: Ranges whose ends differ by this ratio or more are sampled log-uniformly.
_LOG_RATIO = 10.0


@dataclass(frozen=True)
class Assumption:
    """An assumed parameter; `key` is its name in variations."""

    key: str
    default: JsonValue
    tag: Assumed

    @property
    def alternatives(self) -> list[JsonValue]:
        """The ends of the range, or the choices, without the default."""
        return self._choices([self.default])

    def _choices(self, without: Sequence[JsonValue]) -> list[JsonValue]:
        choices = self.tag.choices or [self._range.at(share) for share in (0, 1)]
        return [choice for choice in choices if not any(_same(choice, no) for no in without)]

    @property
    def _range(self) -> Range:
        low, high = self.tag.range or (0.0, 0.0)
        whole = isinstance(self.default, int) and float(low).is_integer() and high.is_integer()
        is_log = low > 0 and high / low >= _LOG_RATIO
        return Range.model_construct(low=low, high=high, log=is_log, whole=whole)

    def at(self, position: float, without: Sequence[JsonValue] = ()) -> JsonValue:
        """Return the plausible value at `position` in [0, 1), excluding the choices `without`."""
        if self.tag.range is None:
            choices = self._choices(without)
            return choices[min(int(position * len(choices)), len(choices) - 1)]
        plausible = self._range
        if plausible.whole and not plausible.log and plausible.low < plausible.high:
            # All whole numbers are equally likely, the ends too.
            steps = plausible.high - plausible.low
            position = min(math.floor(position * (steps + 1)), steps) / steps
        return plausible.at(position)

    def allows(self, value: JsonValue) -> bool:
        """Return whether `value` lies in the range or among the choices."""
        if self.tag.range is None:
            return any(_same(choice, value) for choice in self.tag.choices or [])
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and self.tag.range[0] <= float(str(value)) <= self.tag.range[1]


def _same(first: JsonValue, second: JsonValue) -> bool:
    # 1 == True in Python, but they are different JSON values.
    return first == second and isinstance(first, bool) == isinstance(second, bool)


def assumptions(study: Study) -> list[Assumption]:
    """Return the assumed parameters of a study, shared ones first."""
    assumed = []
    for key, parameter in parameters(study):
        if parameter.assumed is not None:
            assumed.append(Assumption(key, parameter.value, parameter.assumed))
    return assumed


def values_of(
    study: Study,
    experiment: Experiment,
    replicate: int = 0,
    engine: str = "",
    setup: Setup = Setup.DEFAULTS,
) -> dict[str, JsonValue]:
    """Return a replicate's values on an engine, with its draws and the engine's substitutions.

    Under the textbook set-up they include the study's decisions. They are equal at all points; a
    level that sets a parameter has priority.
    """
    values: dict[str, JsonValue] = {}
    for name, parameter in parameters_of(study, experiment).items():
        values[name] = parameter.value
        if parameter.assumed and parameter.assumed.varies:
            low, high = parameter.assumed.varies
            digest = digest_of(f"{study.id}/{experiment.id}/{replicate}/{name}".encode())
            whole = isinstance(parameter.value, int)
            span = Range.model_construct(low=low, high=high, whole=whole)
            values[name] = span.at(int(digest[:16], 16) / 2**64)
    if setup is Setup.TEXTBOOK:
        values |= study.decided(experiment.id)
    return values | study.substituted(engine)


def check_parameters_used(study: Study) -> None:
    """Raise InputError for a parameter that no template uses, since varying it has no effect."""
    used = set().union(*(_used(study, experiment) for experiment in study.experiments))
    for key, _ in parameters(study):
        if key not in used:
            *experiment, name = key.split("/")
            place = ("experiments", *experiment, "parameters") if experiment else ("parameters",)
            raise InputError(
                f"parameter {key!r} is used by no template; use it in one, or move it to the notes "
                "or to configs/explanations",
                (*place, name),
            )


def _used(study: Study, experiment: Experiment) -> set[str]:
    """Return the parameters that an experiment's templates use, named as in variations."""
    values: dict[str, list[Any]] = {
        name: [parameter.value] for name, parameter in parameters_of(study, experiment).items()
    }
    for factor in experiment.factors:
        for level in factor.levels:
            for name, value in level.set.items():
                values[name].append(value)
    templates = experiment.model_dump(exclude={"parameters", "factors", "flows"})
    flows = [whole_flow(flow, values) for flow in experiment.flows]
    used, waiting = set[str](), references([templates, flows])
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting += references(values.get(name, []))
    return {f"{experiment.id}/{n}" if n in experiment.parameters else n for n in used}


def references(value: Any) -> list[str]:
    """Return the parameters that the texts of a template or value refer to."""
    names: list[str] = []
    each_text(value, lambda text: names.extend(REFERENCE.findall(text)))
    return names
