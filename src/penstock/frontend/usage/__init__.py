"""Rows of usage: what is recorded of a request, and how rows reach their log."""
