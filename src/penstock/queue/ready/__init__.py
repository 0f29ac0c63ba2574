"""Chooses the next ready message: lanes by priority, turns between groups, order by time."""
