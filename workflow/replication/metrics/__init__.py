"""Metrics, statistics and features of congestion windows, computed from the tables of runs.

In: `results/<study>/*.parquet`. Out: a value for each run and quantity, means and intervals. Never
here: no value is compared with a published one, and no run is made. `metric_model` names the
metrics, `sampled` computes them from series with `feature` and `cwnd`, and `metric` looks them up.
To add a metric, add a row to `metrics.csv`; one that is not a column or a window's mean also needs
its function in `feature.py`.
"""
