"""What claims say in the coordinates of a chart: ratios as values, bounds as lines.

Papers without tables still print sizes: "about 10 % higher". A ratio with both ends becomes its
middle times the reproduced values it is a ratio to, at each value of the factor; a bound on the
quantity itself becomes a line over the range that the claim names.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from replication.report.drawing.data import axis_factor, display_factor, display_metric
from replication.study.claim_model import Claim, Quantity, RatioTest, ValueTest
from replication.study.study import Experiment, Study


def claimed_values(
    study: Study, experiment: Experiment, metric: str, frame: pd.DataFrame
) -> pd.DataFrame:
    """Return the values that claimed ratios imply at each point of the axis.

    Parameters
    ----------
    study, experiment, metric
        Whose claims, and about what.
    frame
        What `report.drawing.data.estimates` returns for the metric.

    Returns
    -------
    pandas.DataFrame
        series, x, value, source.
    """
    axis = axis_factor(experiment)
    rows = []
    for claim, test in _ratios(study, experiment, metric):
        if axis is None or axis.id in test.right.where or axis.id in test.left.where:
            continue
        base = frame
        for factor, keys in test.right.where.items():
            base = base[base[factor].isin(keys)]
        assert test.expect.at_least is not None and test.expect.at_most is not None
        ratio = (test.expect.at_least + test.expect.at_most) / 2
        names = " and ".join(dict.fromkeys(base["series"]))
        source = f"claim {claim.id}: {ratio:g} times the reproduced mean of {names}"
        for x, value in base.groupby("x")["mean"].mean().items():
            rows.append(("", x, ratio * value, source))
    return pd.DataFrame(rows, columns=["series", "x", "value", "source"]).drop_duplicates(
        ["x", "value"]
    )


def _ratios(study: Study, experiment: Experiment, metric: str) -> Iterator[tuple[Claim, RatioTest]]:
    for claim in study.claims:
        test = claim.test
        if (
            isinstance(test, RatioTest)
            and _about(test.left, experiment, metric)
            and _about(test.right, experiment, metric)
            and test.expect.at_least is not None
            and test.expect.at_most is not None
        ):
            yield claim, test


def claimed_bounds(study: Study, experiment: Experiment, metric: str) -> pd.DataFrame:
    """Return the bounds that claims put on the metric itself: x, x_end, value, word, source."""
    axis = axis_factor(experiment)
    rows = []
    for claim in study.claims:
        test = claim.test
        if axis is None or not isinstance(test, ValueTest):
            continue
        if not _about(test.of, experiment, metric):
            continue
        chosen = test.of.where.get(axis.id, [level.key for level in axis.levels])
        scale = display_factor(axis).factor
        xs = [scale * float(v.value or 0.0) for v in axis.levels if v.key in chosen]
        display = display_metric(metric)
        for bound, word in ((test.expect.at_least, "at least"), (test.expect.at_most, "at most")):
            if bound is not None:
                value = bound * display.factor
                source = f"claim {claim.id}: {word} {value:g} {display.unit}"
                rows.append((min(xs), max(xs), value, f"{claim.id}: {word} {value:g}", source))
    return pd.DataFrame(rows, columns=["x", "x_end", "value", "word", "source"])


def _about(quantity: Quantity, experiment: Experiment, metric: str) -> bool:
    return (
        quantity.experiment == experiment.id
        and quantity.metric == metric
        and quantity.window_s is None
        and quantity.links is None
        and quantity.flows == "tcp"
        and quantity.aggregate == "mean"
    )
