"""The store through metadata servers: for front ends, for tools, and for metadata servers among themselves."""
