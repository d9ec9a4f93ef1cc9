"""Parts that several pages share: numbers, verdicts, links, tables of figures.

In: values as they were judged. Out: what a template prints. `source.py` reads the results.
"""
