"""A metadata server: the store's interface for front ends, with a cache in front of the store."""
