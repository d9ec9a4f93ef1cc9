"""Notebooks: the data, charts and live runs that they share, their execution, and their pages.

In: the notebooks, and the results that they ask for as a `Collection`. Out: executed copies, their
pages, and the students' version of the course. Never here: a law or a solution of a lecture, which
stands in its notebook. A notebook of the report needs an entry in `design/notebook_names.py`.
"""
