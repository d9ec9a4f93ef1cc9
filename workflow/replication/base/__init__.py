"""What every room needs: errors, files, models of documents, tables, and the start of a process.

In: bytes of files, and the environment that started the process. Out: checked values, or an
`InputError` that names file, field, value and remedy; files that are written whole or not at all.
Never here: nothing is run, computed or judged, and no other room is imported.
"""
