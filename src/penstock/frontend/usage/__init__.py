"""Usage rows: their contents, and how they reach their log."""
