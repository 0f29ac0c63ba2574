"""Metrics of queues and of the node in the text format of Prometheus."""
