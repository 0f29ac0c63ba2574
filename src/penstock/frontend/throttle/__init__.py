"""Limits of users and queues, counted in token buckets."""
