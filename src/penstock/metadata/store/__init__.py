"""Where metadata is kept: one small interface, and each store that fulfils it."""
