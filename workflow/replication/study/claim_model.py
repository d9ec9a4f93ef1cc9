"""The grammar of claims: a sentence of a paper and the machine test that decides it.

A test yields one number, the statistic, once per replicate. `expect` says what the statistic must
be for `reproduced`, `direction` what still counts as `direction only`. Both are set from the
paper's words before a run is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from replication.study.model import OPTIONAL, PROSE, Document, Identifier, Window, reaches

#: Keys of levels of a factor. A file may give one without a list, and is written so.
Levels = Annotated[
    list[str],
    BeforeValidator(
        lambda keys: [keys] if isinstance(keys, str) else keys,
        json_schema_input_type=str | list[str],
    ),
    PlainSerializer(lambda keys: keys[0] if len(keys) == 1 else keys, return_type=str | list[str]),
]
#: Levels by factor; a factor that is left out is free.
Where = dict[Identifier, Levels]


class StartOrder(Document):
    """The TCP flow that starts as the `start_order`-th of its run, 1 the first.

    Of flows that start at one time, the one that the scenario lists first starts first.
    """

    start_order: Annotated[int, Field(ge=1)]


Flows = StartOrder | list[Identifier] | Literal["tcp", "cbr", "all"]
#: Directions of monitored links, as they stand in the series: `bottleneck:ab`.
Links = Annotated[
    list[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}:(ab|ba)$")]],
    Field(min_length=1),
]


def flows_in_words(flows: Flows) -> str:
    """Return which flows are meant, for people."""
    if isinstance(flows, StartOrder):
        return f"flow {flows.start_order} by start"
    return flows if isinstance(flows, str) else ", ".join(flows)


def covers(where: Where, levels: Mapping[str, str]) -> bool:
    """Return whether a point with these levels is among those of `where`."""
    return all(levels.get(factor) in keys for factor, keys in where.items())


class Quantity(Document):
    """A number per point and replicate."""

    experiment: Identifier
    """The experiment's id."""
    metric: Identifier
    """See `replicate metrics`."""
    flows: Flows = "tcp"
    """`tcp`, `cbr`, `all`, flow ids, or `{start_order: k}`, the k-th TCP flow to start."""
    aggregate: Literal["sum", "mean", "maximum", "minimum", "pooled", "jain"] = "mean"
    """As in a cell."""
    where: Where = {}
    """Map of factor to level or list of levels."""
    window_s: Window | None = None
    """[from, to]: only this part of the run."""
    links: Links | None = OPTIONAL
    """As in a cell."""

    def at(self, where: Where) -> Quantity:
        """Return the quantity with the levels of `where` laid over its own."""
        return self.model_copy(update={"where": {**self.where, **where}})


class Condition(Document):
    """A bound on the statistic: any of the two ends, at least one."""

    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _bounded(self) -> Condition:
        if self.at_least is None and self.at_most is None:
            raise ValueError("give at_least, at_most or both")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError("at_least is above at_most")
        return self

    def holds(self, value: float) -> bool:
        """Return whether `value` lies inside the bounds, up to rounding."""
        low = self.at_least is None or reaches(value, self.at_least)
        return low and (self.at_most is None or reaches(self.at_most, value))

    def __str__(self) -> str:
        if self.at_least is None:
            return f"<= {self.at_most:g}"
        if self.at_most is None:
            return f">= {self.at_least:g}"
        return f"{self.at_least:g} to {self.at_most:g}"


class PublishedRun(Document):
    """The statistic of one published run, which has to be one that our runs could give.

    `factor` bounds what it may differ by from the mean over our runs.
    """

    published: float
    factor: Annotated[float, Field(gt=1, le=3)]

    #: A single run has no bounds that could be drawn.
    at_least: ClassVar[None] = None
    at_most: ClassVar[None] = None

    def __str__(self) -> str:
        return f"one of our runs could give {self.published:g}"


class _OfRuns(Document):
    expect: Condition | PublishedRun
    direction: Condition | None = None


class _Judged(Document):
    expect: Condition
    direction: Condition | None = None


class _Tied(_Judged):
    tie: Annotated[float, Field(ge=0, lt=1)] = 0.0


class RatioTest(_OfRuns):
    """Ratio left/right at points that match in all factors that neither side fixes.

    A side fixes a factor by naming one level, or by listing levels other than the other side's.

    `reduce` combines the matched points: mean, minimum, maximum, or `ratio_of_means` (the ratio
    of the two sides' means over all their points, which needs no matching).
    """

    kind: Literal["ratio"]
    left: Quantity
    right: Quantity
    reduce: Literal["mean", "minimum", "maximum", "ratio_of_means"] = "mean"


class EquivalenceTest(Document):
    """|left/right - 1| at matched points, reduced; reproduced at or below `margin`.

    With `ratio_of_means`, of the two sides' means over all their points, which needs no matching.
    """

    kind: Literal["equivalence"]
    left: Quantity
    right: Quantity
    reduce: Literal["mean", "maximum", "ratio_of_means"] = "maximum"
    margin: Annotated[float, Field(gt=0, lt=1)]
    direction_margin: Annotated[float, Field(gt=0)] | None = None


class ShareTest(_Tied):
    """Share of left's points at which `left relation factor * right` for every matched right.

    A left point is matched with each right point that agrees in the factors neither side fixes.
    What lies within the relative `tie` of the bound is neither above nor below it.
    """

    kind: Literal["share"]
    left: Quantity
    relation: Literal["above", "below"]
    right: Quantity
    factor: Annotated[float, Field(gt=0)] = 1.0


class TrendTest(_Tied):
    """Spearman's rank correlation of the quantity with a factor's value.

    One correlation for each combination of the other factors; the statistic is the one furthest
    from what is expected if `worst`, else their mean. Values share a rank if steps of at most the
    relative `tie` link them.
    """

    kind: Literal["trend"]
    of: Quantity
    over: Identifier
    worst: bool = True


class StepsTest(_Judged):
    """Share of the steps from a level of factor `over` to the next at which the quantity changes.

    It rises if it is above `factor` times the value before, falls if below: a rank correlation
    knows no size. One share for each combination of the other factors; the statistic is the one
    furthest from what is expected if `worst`, else their mean.
    """

    kind: Literal["steps"]
    of: Quantity
    over: Identifier
    relation: Literal["rises", "falls"]
    factor: Annotated[float, Field(gt=0)] = 1.0
    worst: bool = True


class CrossoverTest(_Judged):
    """Value of factor `over` at which left - right first changes sign (linear interpolation).

    Where it never changes the statistic is undefined and the verdict `not reproduced`.
    `before` says which side is larger first.
    """

    kind: Literal["crossover"]
    left: Quantity
    right: Quantity
    over: Identifier
    before: Literal["left", "right"]


class OrderingTest(_Tied):
    """Kendall's tau between the listed order (largest first) and the measured one.

    Each item of `order` narrows `of` by its `where`; tau is averaged over matched points. Values
    share a rank as in a trend.
    """

    kind: Literal["ordering"]
    of: Quantity
    order: Annotated[list[Where], Field(min_length=2)]


class ValueTest(_OfRuns):
    """The quantity itself, reduced over its points. Features of a series are metrics too."""

    kind: Literal["value"]
    of: Quantity
    reduce: Literal["mean", "minimum", "maximum"] = "mean"


SimpleTest = (
    RatioTest
    | EquivalenceTest
    | ShareTest
    | TrendTest
    | StepsTest
    | CrossoverTest
    | OrderingTest
    | ValueTest
)


class AllTest(Document):
    """Several parts that must all hold; the statistic is the share of parts reproduced.

    With `for_each`, a factor, each part is made at each of its levels.
    """

    kind: Literal["all"]
    parts: Annotated[list[Annotated[SimpleTest, Field(discriminator="kind")]], Field(min_length=1)]
    for_each: Identifier | None = None

    @model_validator(mode="after")
    def _several(self) -> AllTest:
        if len(self.parts) < 2 and self.for_each is None:
            raise ValueError("has one part alone; give two, or the factor for_each of whose levels")
        return self

    def at_each(self, factor: str, levels: Sequence[str]) -> AllTest:
        """Return the test with its parts at each level; ValueError if one names the factor."""
        for part in self.parts:
            if factor == getattr(part, "over", "") or any(factor in q.where for q in sides(part)):
                raise ValueError(
                    f"for_each: a part names {factor!r} itself; leave it out of the part"
                )
        parts = [_narrowed(part, {factor: [key]}) for key in levels for part in self.parts]
        return self.model_copy(update={"parts": parts, "for_each": None})


class NotTestable(Document):
    """The paper gives too little to decide; `reason` says what is missing."""

    kind: Literal["not_testable"]
    reason: Annotated[str, Field(min_length=1, max_length=1000), PROSE]


Test = Annotated[SimpleTest | AllTest | NotTestable, Field(discriminator="kind")]


def sides(test: SimpleTest) -> list[Quantity]:
    """Return the quantities that a test compares."""
    if isinstance(test, OrderingTest):
        return [test.of.at(where) for where in test.order]
    if isinstance(test, TrendTest | StepsTest | ValueTest):
        return [test.of]
    return [test.left, test.right]


def _narrowed(test: SimpleTest, where: Where) -> SimpleTest:
    names = {"of", "left", "right"} & type(test).model_fields.keys()
    return test.model_copy(update={name: getattr(test, name).at(where) for name in names})


class _Sentence(Document):
    id: Identifier
    """`c01`, `c02`, ..."""
    quote: Annotated[str, Field(min_length=1, max_length=400), PROSE]
    """The sentence, verbatim, at most 400 characters; the caption, where only a figure says it."""
    place: Annotated[str, Field(min_length=1, max_length=200), PROSE]
    """Section, table or figure of the paper."""
    reading: Annotated[str, Field(min_length=1, max_length=1000), PROSE]
    """How the words became the test, and why this threshold; else why there is no test."""


class Claim(_Sentence):
    """A result of the paper: its words, its place, how it was turned into a test, and the test."""

    test: Test
    """One of the kinds below."""
    repeats: Identifier | None = None
    """Id of the claim that is the same finding in other words: judged and shown, not counted
    again."""

    @property
    def is_counted(self) -> bool:
        """Whether the claim counts in the headline's shares."""
        return self.repeats is None

    def quantities(self) -> Iterator[Quantity]:
        """Yield every quantity that the test reads."""
        for test in self.tests():
            yield from sides(test)

    def tests(self) -> list[SimpleTest]:
        """Return the test's parts; none where the claim cannot be tested."""
        if isinstance(self.test, NotTestable):
            return []
        return list(self.test.parts) if isinstance(self.test, AllTest) else [self.test]


class Unjudged(_Sentence):
    """A sentence of the paper that is no result of it: listed, and not judged."""

    nature: Literal["background", "prediction", "arithmetic", "table"]
    """`background` from the literature, `prediction` of what the authors did not try, `arithmetic`
    of the set-up, or `table`: a row or caption, whose numbers are cells."""
