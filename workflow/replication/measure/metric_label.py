"""What people call a metric, and the unit that they are shown it in."""

from __future__ import annotations

#: Unit of the data to the unit to show, and the factor to it.
_DISPLAY = {"bit/s": ("Mbit/s", 1e-6), "s": ("ms", 1e3)}
_LABELS = {
    "throughput_bps": "throughput",
    "goodput_bps": "goodput",
    "delay_mean_s": "mean one-way delay",
    "delay_p95_s": "95th percentile of the one-way delay",
    "rtt_mean_s": "mean round-trip time",
    "packets_in_flight": "packets under way at the end",
    "loss_rate": "drop rate",
    "delay_s": "one-way delay",
    "rtt_s": "round-trip time",
    "cwnd_bytes": "congestion window",
    "drops": "packets dropped",
    "cwnd_mean_segments": "mean congestion window",
    "cwnd_peak_segments": "largest congestion window",
    "cwnd_minimum_segments": "smallest congestion window",
    "cwnd_variation": "variation of the congestion window",
    "cwnd_spread": "spread of the congestion window",
    "window_reductions": "reductions of the window",
    "start_up_duration_s": "duration of start-up",
    "slow_start_growth": "growth per round trip in slow start",
    "slow_start_reentries": "returns to slow start",
    "sawtooth_count": "saw-teeth of the window",
    "sawtooth_depth": "share of the window kept at a reduction",
    "window_growth_rate": "growth rate of the window",
    "early_growth": "share of a rise done in its first half",
    "rise_curvature": "curvature of the window's rise",
    "throughput_variation": "variation of the throughput",
    "throughput_between_arrivals_bps": "throughput from first to last arrival",
    "rtt_peak_s": "largest round-trip time",
    "rtt_minimum_s": "smallest round-trip time",
    "rtt_variation": "variation of the round-trip time",
    "queue_mean_packets": "mean queue",
    "queue_peak_packets": "largest queue",
    "queue_drops": "packets dropped at the queue",
    "link_delay_mean_s": "mean link delay",
    "jain_mean": "mean of Jain's index",
    "jain_minimum": "smallest Jain's index",
    "jain_variation": "variation of Jain's index",
    "jain_since_start_mean": "mean of Jain's index since the start",
    "jain_since_start_minimum": "smallest Jain's index since the start",
    "jain_since_start_variation": "variation of Jain's index since the start",
    "jain_since_start_early_growth": "share of the growth of Jain's index done in the first half",
}


def metric_label(metric: str) -> str:
    """Return what a metric is called within a sentence; its name as words where it has no label."""
    return _LABELS.get(metric, metric.replace("_", " "))


def capitalised(words: str) -> str:
    """Return `words` with a capital at their start."""
    return words[:1].upper() + words[1:]


def display_unit(unit: str) -> tuple[str, float]:
    """Return the unit to show `unit` in, and the factor to it."""
    return _DISPLAY.get(unit, (unit, 1.0))
