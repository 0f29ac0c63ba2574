"""Partitions that this node follows: applying records, cutting the log, installing a whole state."""
