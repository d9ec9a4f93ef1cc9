"""The audit: published numbers that cannot be, by physics, arithmetic or chance.

In: a study and its published numbers. Out: `audit.csv`.
"""
