"""Notebooks: what they read, draw and run, how they are executed, and shown as pages.

What is particular to one question stands in its notebook; what several share is a function here. A
notebook that the report has needs an entry in `design/pipeline.py`.
"""
