"""Notebooks: what they read, draw and run, how they are executed, and shown as pages.

In: `notebooks/<name>.ipynb`, which import `replication.lab`, and a folder of results. Out: executed
notebooks and their HTML. What is particular to one question stands in its notebook; what several
share is a function here, named from the field. A notebook that the report has needs an entry in
`design/pipeline.py`.
"""
