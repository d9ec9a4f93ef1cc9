"""Verdicts: each claim and each published cell against what was measured, and the audit.

In: a study, its published numbers, its results. Out: `cells.csv`, `claims.csv`, `audit.csv`. To add
a kind of claim, add its model to `study/claim_model.py` and its statistic to `comparison.py`.
"""
