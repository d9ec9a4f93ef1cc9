"""The replication of published TCP studies, in rooms that import only downwards.

    cli -> report -> sensitivity -> compare -> judge -> plan -> run -> measure -> engines -> study

Each room's `__init__.py` says what goes in, what comes out, and where to add something.
"""
