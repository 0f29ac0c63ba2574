"""Seals: proof that an entry was written by a holder of the master key."""
