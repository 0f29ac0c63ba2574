"""A copy of the store that follows its changes."""
