"""Reports what became of messages."""
