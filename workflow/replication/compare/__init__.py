"""Compare engines, results and published traces.

In: results and verdicts. Out: `agreement_pairs.csv` and `agreement_contrasts.csv`, the tables of
traces, and the differences of two folders of results. Never here: nothing is run for a report, and
no verdict is changed; `sameness` alone runs an engine, to show that changed sources give the same
results.
"""
