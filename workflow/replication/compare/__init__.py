"""Engines and published traces side by side, and the engines' conformance.

In: the results and verdicts of several engines. Out: `agreement.csv`, `conformance.csv`,
`trace_comparison.csv`. To add a conformance check, add it to
`configs/conformance.yaml`; a new kind of check goes into `conformance_model.py`.
"""
