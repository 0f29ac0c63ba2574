"""Combines requests that arrive together into one request to the engine."""
