"""The sockets of the native protocol."""
