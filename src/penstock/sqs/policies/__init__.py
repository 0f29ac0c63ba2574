"""Policies: documents, patterns, conditions, and their evaluation for a request."""
