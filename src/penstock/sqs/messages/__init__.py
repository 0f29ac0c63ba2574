"""Messages, batches, attributes and digests."""
