"""A paper as data, and the documents that every other room reads.

In: `configs/`, `data/published/`. Out: checked models (`Study`, `Scenario`) and
tables. To add a key to the study documents, add a field to its model in `study.py`, `parameter.py`,
`claim_model.py` or `scenario.py`, with its meaning below it, and run `replicate schemas`.
"""
