"""The simulated counterpart of `runtime`: the same interfaces, in memory, driven by one seed."""
