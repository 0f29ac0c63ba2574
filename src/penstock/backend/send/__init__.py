"""Batches of messages in, and messages that move between queues."""
