"""Carries rows of usage to their log."""
