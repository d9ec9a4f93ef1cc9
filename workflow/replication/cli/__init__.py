"""The command line `replicate`: options and messages.

In: the words of a command, or a rule's script. Out: calls of the other rooms, lines on the
terminal, and exit codes. Never here: nothing is computed, and no other room imports it. A command
is a function in `main.py`.
"""
