"""The layout of a cluster: entries about nodes, queues and partitions, and everything that follows from them alone."""
