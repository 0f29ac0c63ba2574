"""The engine of one partition: columns, runs and small tables. It decides and has no side effects."""
