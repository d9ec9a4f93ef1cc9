"""Notebooks: executed on a study's results, and shown as pages.

In: `notebooks/<name>.ipynb`. Out: executed notebooks and their HTML. To add one for a type of
experiment, name it after the type; one for a whole study needs an entry in
`plan/notebook_kind.py`.
"""
