"""The range engine: one partition of a queue as columns, runs and small side tables. Thinks, never touches the world."""
