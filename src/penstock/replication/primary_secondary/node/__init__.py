"""A node's part in a cluster: which partitions it leads and follows, and what it says to other nodes."""
