"""What the data pipeline costs and gives: sections that run in a Spark session. Spark is imported when one is measured."""
