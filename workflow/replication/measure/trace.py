"""Socket traces: reading `ss` samples of TCP senders, and summary figures of a window series.

The summary functions take arrays (time, congestion window, slow-start threshold), so that a
measured trace and a simulated series are judged by one definition each:

Window reduction
    The window falls at least 20 % and at least 2 segments below its highest sample since the
    previous reduction. The next one can only be counted once the window has grown 20 % above
    its lowest sample. The fall is measured from the peak, not between neighbouring samples:
    Linux shrinks the window over a whole round trip (proportional rate reduction), a few per
    cent a sample. Two segments, because Vegas moves a small window by one segment at a time.
Start-up
    Ends at the first sample whose window has reached the slow-start threshold, or at the first
    window reduction, whichever is earlier. `ss` prints no threshold while it is still infinite,
    and BBR never sets one, which is why the second condition is needed.
Mean, minimum
    Over the samples from the end of start-up on; the mean is weighted by time, each sample
    holding until the next, because the sampling interval is irregular.
Peak
    Over the whole connection, slow-start overshoot included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from replication.measure.trace_folder import TRACE_SUFFIX
from replication.study.errors import InputError
from replication.study.table import PUBLISHED_COLUMNS

FloatArray = npt.NDArray[np.float64]

REDUCTION_FRACTION = 0.20
REDUCTION_SEGMENTS = 2.0
RECOVERY_FRACTION = 0.20
#: A data flow has about as many samples as the busiest one; an iperf3 control connection a few.
DATA_FLOW_FRACTION = 0.10

TRIO_COLUMNS = (
    "time_s",
    "source",
    "retransmissions_in_flight",
    "retransmissions",
    "cwnd_segments",
    "ssthresh_segments",
)
#: What no sample can be without; the rest `ss` leaves out at times.
_NEEDED = ("time_s", "port", "cwnd_segments")
PAIR_COLUMNS = (*TRIO_COLUMNS[:2], "delivery_rate_kbps", "rtt_ms", *TRIO_COLUMNS[2:])

#: Data flows of the pair traces, by ascending client port.
PAIR_LABELS: Mapping[str, tuple[str, ...]] = {
    "reno-vs-bbr": ("bbr", "reno"),
    "reno-vs-cubic": ("cubic", "reno"),
    "reno-vs-vegas": ("vegas", "reno"),
}
#: What the paper's order of the plots was checked against in the data themselves.
PAIR_EVIDENCE: Mapping[str, str] = {
    "bbr": "never has a ssthresh",
    "cubic": "ssthresh 0.7 of the window at loss",
    "vegas": "ssthresh at most 3 segments, 2 retransmissions",
    "reno": "ssthresh half of the window at loss",
}


class TraceError(InputError):
    """Base of all errors about traces and window series."""


class TraceFormatError(TraceError):
    """A trace file does not have the expected columns or numbers."""

    def __init__(self, path: Path, reason: str, line: int | None = None) -> None:
        place = str(path) if line is None else f"{path}: line {line}"
        super().__init__(
            f"{place}: {reason}; expected the CSV that the study's script makes of `ss -ein`"
        )


class TraceMissingError(TraceError):
    """A folder holds no trace."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"no *{TRACE_SUFFIX} in {folder}; point to the folder of the traces")


class SeriesError(TraceError):
    """A window series is empty, ragged, unordered or not finite."""


@dataclass(frozen=True)
class WindowSummary:
    """Summary figures of one congestion window; definitions in the module's docstring.

    Attributes
    ----------
    start_up_end_s
        Time at which start-up ends, or None if it never does: the figures then cover the
        whole series.
    mean_segments, peak_segments, minimum_segments
        Congestion window in segments.
    reductions
        Window reductions over the whole series.
    """

    start_up_end_s: float | None
    mean_segments: float
    peak_segments: float
    minimum_segments: float
    reductions: int


def find_reductions(cwnd_segments: npt.ArrayLike) -> list[int]:
    """Return the index of each sample at which a window reduction is first seen.

    Parameters
    ----------
    cwnd_segments
        Congestion window at successive samples.
    """
    found: list[int] = []
    peak, trough, reduced = -np.inf, np.inf, False
    for index, window in enumerate(np.asarray(cwnd_segments, dtype=float)):
        if reduced:
            trough = min(trough, window)
            if window > trough and window >= (1 + RECOVERY_FRACTION) * trough - 1e-9:
                peak, reduced = window, False
        else:
            peak = max(peak, window)
            fall = peak - window + 1e-9  # a fall of exactly 20 % counts despite rounding
            if fall >= REDUCTION_FRACTION * peak and fall >= REDUCTION_SEGMENTS:
                found.append(index)
                trough, reduced = window, True
    return found


def find_start_up_end(cwnd_segments: npt.ArrayLike, ssthresh_segments: npt.ArrayLike) -> int | None:
    """Return the index of the first sample after start-up, or None if start-up never ends.

    Parameters
    ----------
    cwnd_segments
        Congestion window at successive samples.
    ssthresh_segments
        Slow-start threshold at the same samples; NaN or any huge number where it is not set.
    """
    cwnd = np.asarray(cwnd_segments, dtype=float)
    ssthresh = np.asarray(ssthresh_segments, dtype=float)
    # A comparison with NaN is false: an unset threshold never ends start-up.
    ends = [*np.flatnonzero(cwnd >= ssthresh)[:1], *find_reductions(cwnd)[:1]]
    return int(min(ends)) if ends else None


def time_weighted_mean(time_s: npt.ArrayLike, values: npt.ArrayLike) -> float:
    """Return the mean of samples that each hold until the next one.

    Parameters
    ----------
    time_s
        Sample times, not decreasing.
    values
        Samples; those that are NaN are left out.
    """
    time, samples = np.asarray(time_s, dtype=float), np.asarray(values, dtype=float)
    known = np.isfinite(samples)
    time, samples = time[known], samples[known]
    if not samples.size:
        raise SeriesError("no finite sample to take a mean of")
    held = np.diff(time)
    if held.sum() == 0:
        return float(samples.mean())
    return float(np.average(samples[:-1], weights=held))


def summarise_window(
    time_s: npt.ArrayLike, cwnd_segments: npt.ArrayLike, ssthresh_segments: npt.ArrayLike
) -> WindowSummary:
    """Summarise one flow's congestion window.

    Parameters
    ----------
    time_s
        Sample times, not decreasing.
    cwnd_segments
        Congestion window at those times.
    ssthresh_segments
        Slow-start threshold at those times; NaN or any huge number where it is not set.

    Raises
    ------
    SeriesError
        If the arrays are empty or of different lengths, times go backwards, or a time or a
        window is not finite.
    """
    time, cwnd, ssthresh = _checked(time_s, cwnd_segments, ssthresh_segments)
    end = find_start_up_end(cwnd, ssthresh)
    steady = slice(end or 0, None)
    return WindowSummary(
        start_up_end_s=None if end is None else float(time[end]),
        mean_segments=time_weighted_mean(time[steady], cwnd[steady]),
        peak_segments=float(cwnd.max()),
        minimum_segments=float(cwnd[steady].min()),
        reductions=len(find_reductions(cwnd)),
    )


def _checked(*series: npt.ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    time, cwnd, ssthresh = (np.asarray(values, dtype=float) for values in series)
    if not time.size or time.ndim != 1 or not time.shape == cwnd.shape == ssthresh.shape:
        raise SeriesError("time, cwnd and ssthresh must be non-empty and of one length")
    if not (np.isfinite(time).all() and np.isfinite(cwnd).all()):
        raise SeriesError("times and windows must be finite; only ssthresh may be NaN")
    if (np.diff(time) < 0).any():
        raise SeriesError("times must not decrease; sort the samples of each flow by time")
    return time, cwnd, ssthresh


def read_trace(path: Path) -> pd.DataFrame:
    """Read one `ss` trace of all connections of a sender.

    Parameters
    ----------
    path
        CSV without header: time, source, [delivery rate, smoothed RTT,] retransmissions in
        flight, retransmissions so far, cwnd, ssthresh.

    Returns
    -------
    pandas.DataFrame
        ``time_s, port, cwnd_segments, ssthresh_segments, retransmissions,
        retransmissions_in_flight`` and, in a pair trace, ``delivery_rate_bps, rtt_s``.
        NaN where `ss` printed nothing: a count of zero or a threshold that is not set.

    Raises
    ------
    TraceFormatError
        If columns are missing or hold anything but numbers.
    """
    try:
        raw = pd.read_csv(path, header=None, dtype=str, skip_blank_lines=False)
    except pd.errors.ParserError as error:
        # The parser's own words name the line: "Expected 6 fields in line 3, saw 7".
        raise TraceFormatError(path, str(error).strip()) from error
    except UnicodeDecodeError as error:
        raise TraceFormatError(path, "is not UTF-8 text") from error
    except pd.errors.EmptyDataError as error:
        raise TraceFormatError(path, "the file is empty") from error
    layouts = {len(names): names for names in (TRIO_COLUMNS, PAIR_COLUMNS)}
    if raw.shape[1] not in layouts:
        raise TraceFormatError(path, f"{raw.shape[1]} columns", 1)
    raw.columns = pd.Index(layouts[raw.shape[1]])
    return _numbers(path, raw)


def _numbers(path: Path, raw: pd.DataFrame) -> pd.DataFrame:
    counters = ["retransmissions_in_flight", "retransmissions"]
    # Before the first retransmission `ss` may print another counter in its place, such as
    # "sacked:1 rcv_space"; the study's script then cuts out that counter and the next word.
    raw.loc[raw["retransmissions"] == "rcv_space", counters] = None
    raw["port"] = raw.pop("source").str.rpartition(":")[2]
    trace: pd.DataFrame = raw.apply(pd.to_numeric, errors="coerce").astype(float)
    for name in raw:
        _check_numbers(path, raw[name], trace[name])
    trace["port"] = trace["port"].astype(int)
    if "rtt_ms" in trace:
        trace["rtt_s"] = trace.pop("rtt_ms") / 1e3
        trace["delivery_rate_bps"] = trace.pop("delivery_rate_kbps") * 1e3
    return trace


def _check_numbers(path: Path, texts: pd.Series[str], numbers: pd.Series[float]) -> None:
    """Raise TraceFormatError, with the line, for a text that is not a number or must be there."""
    known = np.isfinite(numbers)
    needed = texts.name in _NEEDED
    wrong = ~known if needed else texts.notna() & ~known
    if texts.name == "cwnd_segments":
        wrong |= numbers <= 0
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        shown = "nothing" if pd.isna(texts.iloc[row]) else repr(texts.iloc[row])
        kind = "a positive number" if texts.name == "cwnd_segments" else "a number"
        raise TraceFormatError(path, f"{texts.name} is {shown}, not {kind}", row + 1)


def split_data_flows(trace: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """Return the samples of each data flow by client port, ascending.

    The control connection of iperf3 is left out: it holds unacknowledged data, and so is
    sampled, only while a test is set up and closed.

    Parameters
    ----------
    trace
        What `read_trace` returns.
    """
    counts = trace["port"].value_counts()
    data = counts.index[counts >= DATA_FLOW_FRACTION * counts.max()]
    return {
        int(port): trace[trace["port"] == port].sort_values("time_s", ignore_index=True)
        for port in sorted(data)
    }


def read_flows(
    path: Path, labels: Mapping[str, Sequence[str]] = PAIR_LABELS
) -> dict[str, tuple[int, pd.DataFrame]]:
    """Return the client port and the samples of each data flow of a trace, by the flow's name.

    Parameters
    ----------
    path
        A ``<stem>.sender-ss.csv`` file.
    labels
        Names of the data flows by ascending port, for the stems where they are known;
        other flows are called flow1, flow2, ...

    Raises
    ------
    TraceFormatError
        If the file cannot be read or has another number of data flows than labels.
    """
    flows = split_data_flows(read_trace(path))
    numbered = [f"flow{number}" for number in range(1, len(flows) + 1)]
    names = labels.get(path.name.removesuffix(TRACE_SUFFIX), numbered)
    if len(names) != len(flows):
        raise TraceFormatError(path, f"{len(flows)} data flows for {len(names)} labels")
    return dict(zip(names, flows.items(), strict=True))


def derive_trace_rows(
    folder: Path, labels: Mapping[str, Sequence[str]] = PAIR_LABELS
) -> pd.DataFrame:
    """Derive the summary figures of every trace in a folder, as rows of published numbers.

    Parameters
    ----------
    folder
        Folder of ``<stem>.sender-ss.csv`` files.
    labels
        As for `read_flows`.

    Returns
    -------
    pandas.DataFrame
        ``table, row, column, unit, value, printed, place``.

    Raises
    ------
    TraceMissingError
        If the folder holds no trace.
    TraceFormatError
        If a file cannot be read or has another number of data flows than labels.
    """
    rows: list[dict[str, str | float]] = []
    for path in sorted(folder.glob(f"*{TRACE_SUFFIX}")):
        stem = path.name.removesuffix(TRACE_SUFFIX)
        for name, (port, samples) in read_flows(path, labels).items():
            origin = f"derived from trace {path.name}, client port {port}"
            if stem in labels and name in PAIR_EVIDENCE:
                origin += f" ({name} by the paper's order of the plots; {PAIR_EVIDENCE[name]})"
            for figure in _figures(samples):
                rows.append({"table": f"trace:{stem}", "row": name, **_row(figure, origin)})
    if not rows:
        raise TraceMissingError(folder)
    return pd.DataFrame(rows, columns=list(PUBLISHED_COLUMNS))


@dataclass(frozen=True)
class _Figure:
    column: str
    unit: str
    value: float
    decimals: int
    definition: str


def _figures(samples: pd.DataFrame) -> list[_Figure]:
    summary = summarise_window(
        samples["time_s"], samples["cwnd_segments"], samples["ssthresh_segments"]
    )
    # `ss` prints the count only once it is above zero.
    retransmissions = float(samples["retransmissions"].fillna(0).max())
    figures = [
        _Figure("cwnd_mean", "segments", summary.mean_segments, 2, "time-weighted, after start-up"),
        _Figure("cwnd_peak", "segments", summary.peak_segments, 0, "whole connection"),
        _Figure("cwnd_minimum", "segments", summary.minimum_segments, 0, "after start-up"),
        _Figure("window_reductions", "1", summary.reductions, 0, "falls of 20 % from the peak"),
        _Figure("retransmissions", "packets", retransmissions, 0, "last cumulative count"),
    ]
    if "rtt_s" in samples:
        steady = samples[samples["time_s"] >= (summary.start_up_end_s or 0.0)]
        rtt = time_weighted_mean(steady["time_s"], steady["rtt_s"])
        definition = "smoothed RTT, time-weighted, after start-up"
        figures.append(_Figure("rtt_mean", "s", rtt, 4, definition))
    return figures


def _row(figure: _Figure, origin: str) -> dict[str, str | float]:
    text = f"{figure.value:.{figure.decimals}f}"
    return {
        "column": figure.column,
        "unit": figure.unit,
        "value": float(text),
        "printed": f"derived:{text}",
        "place": f"{origin}; {figure.definition}",
    }
