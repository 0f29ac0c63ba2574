"""The internal manager of a cluster as a machine: its election, and when it looks, decides and writes."""
