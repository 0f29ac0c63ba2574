"""Connections between the processes of a cluster."""
