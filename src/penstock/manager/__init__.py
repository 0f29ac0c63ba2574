"""The internal manager of a cluster at work: elected through the store, it writes what `cluster/` decides."""
