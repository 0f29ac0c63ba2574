"""The internal manager of a cluster as a machine: its office, and when it looks, decides and writes."""
