"""`/metrics` and `/health`."""
