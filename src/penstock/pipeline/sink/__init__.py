"""Writes rows of Spark into queues, as a batch and as a stream, each row once."""
