"""Claims: a sentence of a paper and the test that decides it.

A test yields one number per replicate, the statistic. It must meet `expect` for `reproduced` and
`direction` for `direction only`. Both are set from the paper's words before a run is looked at.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    model_validator,
)

from replication.base.errors import InputError, Place
from replication.base.model import (
    Document,
    Identifier,
    Text,
    Window,
    reaches,
)

#: Keys of a factor's levels; a file may give a single one without a list.
Levels = Annotated[
    list[str],
    BeforeValidator(
        lambda keys: [keys] if isinstance(keys, str) else keys,
        json_schema_input_type=str | list[str],
    ),
    PlainSerializer(lambda keys: keys[0] if len(keys) == 1 else keys, return_type=str | list[str]),
]
#: Levels by factor; other factors may have any level.
Where = dict[Identifier, Levels]


class StartOrder(Document):
    """The TCP flow that starts as the `start_order`-th, from 1; ties in the scenario's order."""

    start_order: Annotated[int, Field(ge=1)]


Flows = StartOrder | list[Identifier] | Literal["tcp", "cbr", "all"]


def flows_in_words(flows: Flows) -> str:
    """Return the flows as text for readers."""
    if isinstance(flows, StartOrder):
        return f"flow {flows.start_order} by start"
    return flows if isinstance(flows, str) else ", ".join(flows)


def covers(where: Where, levels: Mapping[str, str]) -> bool:
    """Return whether a point with these levels is one of the points of `where`."""
    return all(levels.get(factor) in keys for factor, keys in where.items())


class Measured(Document):
    """A metric of some flows or links."""

    metric: Identifier
    """Name of a metric; `replicate metrics` lists them."""
    flows: Flows = "tcp"
    """`tcp`, `cbr`, `all`, flow ids, or `{start_order: k}`, the k-th TCP flow to start."""
    aggregate: Literal["sum", "mean", "maximum", "minimum", "pooled", "jain"] = "mean"
    """How several flows or links are combined: `mean`, `sum`, `maximum`, `minimum`, `pooled` (ratio
    of sums over all packets), or `jain`."""
    window_s: Window | None = None
    """Part of the run, [from, to] in s, for metrics of the series; without it the whole run."""


class Quantity(Measured):
    """A number per point and replicate."""

    experiment: Identifier
    """Id of the experiment."""
    where: Where = {}
    """Map of factor to level or list of levels."""

    def to_json(self) -> str:
        """Return what the quantity says, without defaults, as JSON text."""
        return self.model_dump_json(exclude_defaults=True)


def check_bounds(test: Document, low: float, high: float, of: str) -> None:
    """Raise InputError for a bound of a test beyond the range of its statistic."""
    for key in ("expect", "direction"):
        condition = getattr(test, key)
        for end in ("at_least", "at_most"):
            bound = getattr(condition, end, None)
            if bound is not None and not low <= bound <= high:
                raise InputError(
                    f"{key}.{end}: {bound:g} is beyond what it bounds, {of}: from {low:g} to "
                    f"{high:g}",
                    (key, end),
                )


class Condition(Document):
    """Bounds of the statistic: `at_least`, `at_most` or both."""

    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise ValueError("give at_least, at_most or both")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError("at_least is above at_most")
        return self

    def holds(self, value: float) -> bool:
        """Return whether `value` lies within the bounds, up to rounding."""
        low = self.at_least is None or reaches(value, self.at_least)
        return low and (self.at_most is None or reaches(self.at_most, value))

    def __str__(self) -> str:
        if self.at_least is None:
            return f"<= {self.at_most:g}"
        if self.at_most is None:
            return f">= {self.at_least:g}"
        return f"{self.at_least:g} to {self.at_most:g}"


class PublishedRun(Document):
    """The statistic of one published run, and its bound `factor` (`verdicts.published_run`)."""

    published: float
    factor: Annotated[float, Field(gt=1, le=3)]

    #: Charts draw no bounds for a single run.
    at_least: ClassVar[None] = None
    at_most: ClassVar[None] = None

    def __str__(self) -> str:
        return f"one of our runs could give {self.published:g}"


#: Tags of expectations; no key of a document is called so.
_BOUNDS, _RUN = "(bounds)", "(one run)"


def _kind_of_expectation(value: Any) -> str:
    keys = value if isinstance(value, dict) else ()
    is_run = isinstance(value, PublishedRun) or "published" in keys or "factor" in keys
    return _RUN if is_run else _BOUNDS


#: Bounds, or the statistic of one published run, told apart by their keys.
_Expectation = Annotated[
    Annotated[Condition, Tag(_BOUNDS)] | Annotated[PublishedRun, Tag(_RUN)],
    Discriminator(_kind_of_expectation),
]


class _OfRuns(Document):
    expect: _Expectation
    direction: Condition | None = None


class _Judged(Document):
    expect: Condition
    direction: Condition | None = None


class _Tied(_Judged):
    tie: Annotated[float, Field(ge=0, lt=1)] = 0.0


class RatioTest(_OfRuns):
    """Ratio left / right at points that agree in the factors that neither side fixes.

    A side fixes a factor by naming one level, or by listing levels other than the other side's.
    `reduce` combines the matched points; `ratio_of_means` divides the means over all points of
    either side, which needs no matching.
    """

    kind: Literal["ratio"]
    left: Quantity
    right: Quantity
    reduce: Literal["mean", "minimum", "maximum", "ratio_of_means"] = "mean"

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        check_bounds(self, 0, math.inf, "a ratio")
        return self


class EquivalenceTest(Document):
    """|left / right - 1| at matched points, reduced as in `ratio`; reproduced up to `margin`."""

    kind: Literal["equivalence"]
    left: Quantity
    right: Quantity
    reduce: Literal["mean", "maximum", "ratio_of_means"] = "maximum"
    margin: Annotated[float, Field(gt=0, lt=1)]
    direction_margin: Annotated[float, Field(gt=0)] | None = None

    @property
    def expect(self) -> Condition:
        """What the statistic must meet."""
        return Condition(at_most=self.margin)

    @property
    def direction(self) -> Condition | None:
        """What still has the right direction."""
        wider = self.direction_margin
        return None if wider is None else Condition(at_most=wider)


class ShareTest(_Tied):
    """Share of left's points that are above or below `factor` times every matched right point.

    Points are matched as in `ratio`. Values within the relative `tie` of the bound are neither
    above nor below it.
    """

    kind: Literal["share"]
    left: Quantity
    relation: Literal["above", "below"]
    right: Quantity
    factor: Annotated[float, Field(gt=0)] = 1.0

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        check_bounds(self, 0, 1, "a share")
        return self


class TrendTest(_Tied):
    """Spearman's rank correlation of the quantity with the value of factor `over`.

    There is one correlation per combination of the other factors. The statistic is the one furthest
    from `expect`, or with `worst: false` their mean. Values share a rank if steps of at most the
    relative `tie` link them.
    """

    kind: Literal["trend"]
    of: Quantity
    over: Identifier
    worst: bool = True

    @model_validator(mode="after")
    def _can_be_met(self) -> Self:
        check_bounds(self, -1, 1, "a rank correlation")
        return self


class CrossoverTest(_Judged):
    """Value of factor `over` at which left - right first changes sign (linear interpolation).

    `before` names the side that is larger first. Without a change of sign the claim is not
    reproduced.
    """

    kind: Literal["crossover"]
    left: Quantity
    right: Quantity
    over: Identifier
    before: Literal["left", "right"]


class ValueTest(_OfRuns):
    """The quantity, reduced over its points."""

    kind: Literal["value"]
    of: Quantity
    reduce: Literal["mean", "minimum", "maximum"] = "mean"


SimpleTest = RatioTest | EquivalenceTest | ShareTest | TrendTest | CrossoverTest | ValueTest
#: A test of one statistic, as documents give it.
StatisticTest = Annotated[SimpleTest, Field(discriminator="kind")]


class AllTest(Document):
    """Several parts that must all hold; the statistic is the share of reproduced parts."""

    kind: Literal["all"]
    parts: Annotated[list[StatisticTest], Field(min_length=2)]


class NotTestable(Document):
    """A claim that the paper gives too little to decide; `reason` says what is missing."""

    kind: Literal["not_testable"]
    reason: Annotated[Text, Field(max_length=1000)]


Test = Annotated[SimpleTest | AllTest | NotTestable, Field(discriminator="kind")]


#: Keys of the quantities of a test.
SIDES = ("of", "left", "right")


def sides(test: SimpleTest) -> list[Quantity]:
    """Return the quantities that a test compares."""
    if isinstance(test, TrendTest | ValueTest):
        return [test.of]
    return [test.left, test.right]


class _Sentence(Document):
    id: Identifier
    """`c01`, `c02`, ..."""
    quote: Annotated[Text, Field(max_length=400)]
    """The sentence, verbatim; the caption for a result that only a figure shows."""
    place: Annotated[Text, Field(max_length=200)]
    """Section, table or figure of the paper."""
    reading: Annotated[Text, Field(max_length=1000)]
    """How the test follows from the words, and the reason for its threshold."""


class Claim(_Sentence):
    """A result of the paper and its test."""

    test: Test
    """The test; `kind` names its form."""
    repeats: Identifier | None = None
    """Id of the claim that states the same finding. The repeat is judged, but not counted again."""

    @property
    def is_counted(self) -> bool:
        """Whether the claim counts in the shares of reproduced claims."""
        return self.repeats is None

    def quantities(self) -> list[Quantity]:
        """Return every quantity of the test."""
        quantities: list[Quantity] = []
        for test in self.tests():
            quantities += sides(test)
        return quantities

    def placed_quantities(self) -> Iterator[tuple[Place, Quantity]]:
        """Yield every quantity of the test with its place in the claim."""
        for place, test in self.placed_tests():
            for side in SIDES:
                if (quantity := getattr(test, side, None)) is not None:
                    yield (*place, side), quantity

    def placed_tests(self) -> Iterator[tuple[Place, SimpleTest]]:
        """Yield the parts of the test with their places in the claim."""
        is_all = isinstance(self.test, AllTest)
        for number, test in enumerate(self.tests()):
            yield (("test", "parts", number) if is_all else ("test",)), test

    def tests(self) -> list[SimpleTest]:
        """Return the parts of the test; none for a claim that cannot be tested."""
        if isinstance(self.test, NotTestable):
            return []
        return list(self.test.parts) if isinstance(self.test, AllTest) else [self.test]


class Unjudged(_Sentence):
    """A sentence of the paper that is not a result: it is listed, but not judged."""

    nature: Literal["background", "prediction", "arithmetic", "table"]
    """`background` from the literature, `prediction` of an experiment that the authors did not run,
    `arithmetic` of the set-up, or `table`: a row or caption, whose numbers are cells."""
