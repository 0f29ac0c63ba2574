"""The native protocol: frames, messages, connection state. Bytes in, events out; no sockets."""
