"""Streams between the nodes of a cluster: one for each pair, both ends proven to know the cluster's secret."""
