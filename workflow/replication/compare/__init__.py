"""Engines, results and published traces compared.

In: the results and verdicts of several engines. Out: `agreement.csv`, `trace_comparison.csv`.
"""
