"""Files that later stages read: written whole or not at all.

In: rows, frames, documents. Out: CSV, Parquet, JSON and YAML files.
"""
