"""Requests and replies over queues."""
