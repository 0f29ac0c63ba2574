"""Whole clusters in one thread: machines, the network between them, the metadata store, the manager and clients."""
