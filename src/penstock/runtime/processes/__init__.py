"""The processes: serve, node, front end, metadata server; how each opens and closes."""
