"""Verdicts on claims and published cells, and the audit of published numbers.

In: a study, its published numbers, its results. Out: `cells.csv`, `claims.csv`, `audit.csv`. Never
here: nothing is run or drawn, and a rule knows no study by name. To add a kind of claim, add its
model to `study/claim_model.py` and its statistic to `comparison.py`.
"""
