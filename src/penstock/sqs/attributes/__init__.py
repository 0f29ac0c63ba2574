"""Attributes and tags of queues."""
