"""The command line `replicate`: options and messages.

In: the command line. Out: calls of the other rooms. A command is a function in `main.py`.
"""
