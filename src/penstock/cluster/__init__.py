"""Decisions about many nodes: which are alive, which replicas they hold, and what to do when that changes."""
