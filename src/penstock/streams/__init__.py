"""Connections of frames over an event loop, and waiting on it: shared by the client, the metadata and the servers."""
