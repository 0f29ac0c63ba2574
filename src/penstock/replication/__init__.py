"""Replication: when a record is safe, which replica has which records, and what must be cut. Records are opaque here."""
