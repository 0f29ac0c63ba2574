"""A node's part in a cluster: the partitions that it leads and follows, and its messages to other nodes."""
