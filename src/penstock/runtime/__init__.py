"""The real world behind small interfaces: disk, clock, network, and what drives a node with them."""
