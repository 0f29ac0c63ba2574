"""Reading retained logs by range, and consumer groups."""
