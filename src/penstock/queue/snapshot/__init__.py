"""The state of a partition as pages: captured, built and taken apart a few pages at a time."""
