"""How verdicts change with what the papers do not state, and why numbers differ.

In: the parameters' plausible ranges, `configs/sensitivity.yaml`, `configs/explanations`,
`configs/modern_kernel.yaml`. Out: `sensitivity/`, explanations.csv, explanation_causes.csv and
explained_cells.csv. A new assumption is a parameter of its study, without code. `robustness` varies
the assumptions, `explanation` searches for causes, `modern_kernel` judges on a modern kernel.
"""
