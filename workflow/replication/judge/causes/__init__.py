"""Possible causes of a difference, as data: atoms, and the readings of a printed number.

In: `configs/explanations/`. Out: checked atoms. `sensitivity.why` searches the best set of them.
"""
