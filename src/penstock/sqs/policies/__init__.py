"""Policies: documents, patterns, conditions, and what they say of a request."""
