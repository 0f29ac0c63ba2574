"""The blocking client: the same calls without `await`, carried out by the asynchronous client on a thread that the bridge runs.

`bridge.py` and `connecting.py` are written by hand. The classes are made from the asynchronous ones by `make blocking`.
"""
