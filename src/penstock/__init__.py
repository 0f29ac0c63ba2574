"""Penstock: a self-hosted durable message queue."""

__version__ = "0.1.0"
