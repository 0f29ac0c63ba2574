"""A node's part in a cluster: what it leads, what it follows, and what it says to other nodes."""
