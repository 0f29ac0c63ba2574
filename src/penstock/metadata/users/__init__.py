"""Users, keys and policies in the metadata store."""
