"""Sending: batches, producers, stamps."""
