"""Rows about the work of the queue as columns in Arrow's format, which any data tool reads."""
