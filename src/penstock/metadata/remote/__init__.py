"""The store as metadata servers give it: for front ends, for tools, and for metadata servers among themselves."""
