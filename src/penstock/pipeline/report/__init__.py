"""The report: one page of HTML from the tables of the warehouse, without Spark."""
