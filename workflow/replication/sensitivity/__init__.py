"""How verdicts change with what the papers do not state, and what explains their gaps.

In: the parameters' plausible ranges, `configs/sensitivity.yaml`, `configs/hypotheses.yaml`. Out:
`sensitivity/` and `forensics/`. A new assumption is a parameter of its study, without code;
`analysis.py` holds the order of work.
"""
