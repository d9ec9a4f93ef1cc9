"""How verdicts change with what the papers do not state, why numbers differ, and where claims hold.

In: parameters' plausible ranges, causes, regions, named variations and interventions (`configs/`),
and runs from the store. Out: `sensitivity/`, `regions/` and interventions.csv; `explained.py` and
`regions/region_rows.py` have the types of what the report reads. Never: a verdict of the report is
changed here, a run starts outside of `machine.py`, or a choice depends on the clock. A new
assumption is a parameter of its study, without code.
"""
