"""The retained log of a partition: its index, its retention, and the groups that read it."""
