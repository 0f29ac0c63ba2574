"""The warehouse: Parquet tables under one directory, that are exact whatever is killed, and that any tool reads."""
