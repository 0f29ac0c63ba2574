"""Thinking about many nodes: who is there, who holds what, and what to do when that changes."""
