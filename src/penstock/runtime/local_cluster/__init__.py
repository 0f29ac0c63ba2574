"""A whole cluster on this machine: its processes, planned, started, watched and stopped."""
