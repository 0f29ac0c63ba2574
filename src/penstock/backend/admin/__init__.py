"""Queues are made, altered, deleted, listed and described."""
