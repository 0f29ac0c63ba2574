"""Requests that arrive together become one request to the engine."""
