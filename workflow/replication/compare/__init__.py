"""Engines, results and published traces compared.

In: the results and verdicts of several engines. Out: `agreement_pairs.csv`, `trace_comparison.csv`.
"""
