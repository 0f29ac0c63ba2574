"""The `penstock` data source of Spark: reading logs, as a batch and as a stream."""
