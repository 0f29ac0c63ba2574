"""Which ready message is next: lanes by priority, turns between groups, order by time."""
