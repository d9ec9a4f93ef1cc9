"""Compare engines, results and published traces.

In: results and verdicts. Out: `agreement_pairs.csv`, `trace_comparison.csv`.
"""
