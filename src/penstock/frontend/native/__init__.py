"""The native protocol's way through the front end: who is there, what they may do, and what is recorded of it.

`native_guard.py` puts the parts together; see `docs/adr/0023-the-native-guard.md`.
"""
