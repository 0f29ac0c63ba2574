"""The native protocol's path through the front end: authentication, authorization and usage records.

`native_guard.py` puts the parts together; see `docs/adr/0023-the-native-guard.md`.
"""
