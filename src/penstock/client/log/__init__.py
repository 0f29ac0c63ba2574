"""Reading a retained log: slices of it read ahead, places in it, and groups of readers that share it."""
