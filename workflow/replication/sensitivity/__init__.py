"""How verdicts change with what the papers do not state, and why numbers differ.

In: the parameters' plausible ranges, `configs/sensitivity.yaml`, `configs/explanations`. Out:
`sensitivity/`, explanations.csv and explained_cells.csv. A new assumption is a parameter of its
study, without code; `analysis.py` holds the order of work, `why` the search for causes.
"""
