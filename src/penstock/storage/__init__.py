"""The journal, segments, snapshots and recovery: synchronous code over the small `Disk` interface."""
