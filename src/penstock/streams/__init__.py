"""Connections of frames over an event loop, and waiting on it: what the client, metadata and servers share of it."""
