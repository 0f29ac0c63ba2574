"""The disk of the machine behind the interface of storage."""
