"""Sends usage rows to their log."""
