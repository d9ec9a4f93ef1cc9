"""The command line `replicate`: options and messages, no logic.

In: words of the command line. Out: calls of the other rooms. To add a command, add a function to
`main.py`.
"""
