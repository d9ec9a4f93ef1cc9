"""Papers as data: the documents that all other rooms read.

In: `configs/`, `data/published/`. Out: checked models (`Study`, `Scenario`) and tables. Never here:
nothing is run or judged, and no page is known. To add a key to the study documents, add a field to
its model in `study.py`, `parameter.py`, `claim_model.py` or `scenario.py`, with its meaning as
docstring, and run `replicate schemas`.
"""
