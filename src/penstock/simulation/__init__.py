"""The simulated twin of `runtime`: the same interfaces, in memory, driven by one seed."""
