"""The warehouse: Parquet tables under one directory, exact after any kill, and readable by any tool."""
