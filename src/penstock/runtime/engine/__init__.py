"""Drives a node: its loop, its threads, and the links to it."""
