"""The stores of metadata: one small interface, and its implementations."""
