"""Points at which the monitored link never fills, which the textbook set-up is to say."""

from typing import NamedTuple

from replication.metrics.metric import monitored_links
from replication.metrics.results import Results
from replication.metrics.sampled import RUN

#: A link whose queue is shorter on average has nothing waiting most of the time.
_QUEUED_PACKETS = 1.0


class UnfilledPoint(NamedTuple):
    """A point of an experiment on an engine."""

    experiment: str
    point: str
    engine: str


def unfilled_points(results: Results) -> list[UnfilledPoint]:
    """Return the points where no run drops a packet or has a mean queue of a packet.

    The queues are the monitored ones. A point that an engine refuses is not among them.
    """
    flows = results.flows
    dropped = flows.groupby(RUN, as_index=False)["packets_dropped"].sum()
    queues = results.values("queue_mean_packets", None, monitored_links(results, flows))
    longest = queues.groupby(RUN, as_index=False)["value"].max()
    runs = results.design[results.design["supported"]].merge(dropped, on=RUN).merge(longest, on=RUN)
    is_filled = (runs["packets_dropped"] > 0) | (runs["value"] >= _QUEUED_PACKETS)
    fields = [*UnfilledPoint._fields]
    at_a_run = runs.assign(is_filled=is_filled).groupby(fields)["is_filled"]
    never = runs.loc[~at_a_run.transform("any"), fields].drop_duplicates()
    return [UnfilledPoint(*row) for row in never.itertuples(index=False, name=None)]
