"""Streams between the nodes of a cluster: one for each pair, both ends authenticated with the cluster's secret."""
