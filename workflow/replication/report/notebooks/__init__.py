"""Notebooks: the data, charts and live runs that they share, their execution, and their pages.

A notebook of the report needs an entry in `design/notebook_names.py`.
"""
