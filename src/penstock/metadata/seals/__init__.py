"""Seals: proof that an owner of the master key wrote an entry."""
