"""Reading retained logs by range, and the groups that read them."""
