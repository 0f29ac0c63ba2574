"""Columnar: rows about the work of the queue, as columns in Arrow's format, that any data tool reads."""
