"""Signature Version 4."""
