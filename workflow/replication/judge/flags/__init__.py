"""Flags beside verdicts: whether what was compared could differ, and how the paper's own data fare.

`claim_flag` writes `claim_flags.csv`: what a verdict cannot say by its word alone.
"""
