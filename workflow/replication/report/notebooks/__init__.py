"""Notebooks: their data, charts and live runs, their execution, and their pages.

Code that only one notebook needs is in that notebook; code that several share is here. A notebook
of the report needs an entry in `design/pipeline.py`.
"""
