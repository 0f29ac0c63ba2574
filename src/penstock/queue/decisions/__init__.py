"""Decisions about a partition: send, receive, settle, move, upkeep. Each gives records and an answer, and changes nothing."""
