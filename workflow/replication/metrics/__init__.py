"""From the tables of runs to quantities: metrics, statistics, features of a window's course.

In: `results/<study>/*.parquet`. Out: one value a run and quantity, means and intervals. To add a
metric, add a row to `metrics.csv`; one that is not a column or a window's mean also needs its
function in `feature.py`.
"""
