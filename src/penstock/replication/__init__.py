"""Thinking about copies: when a record is safe, who has what, what must be cut. Records are opaque here."""
