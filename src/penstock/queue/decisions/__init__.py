"""Decisions about a partition: send, receive, settle, move, upkeep. Each returns records and an answer, and changes nothing."""
