"""Partitions that this node leads: epochs, sending to replicas, commits, answers."""
