"""Reading a retained log: reading ahead, positions, and consumer groups."""
