"""The real disk, clock and network behind small interfaces, and the drivers that run a node with them."""
