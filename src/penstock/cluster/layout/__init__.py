"""The layout of a cluster: entries about nodes, queues and partitions, and what can be worked out from them alone."""
