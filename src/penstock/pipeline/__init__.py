"""The data pipeline on Spark: a source and a sink, jobs, and the tables that people read."""
