"""The blocking client: the same calls without `await`, carried out by the asynchronous client on a background thread.

`bridge.py` and `connecting.py` are written by hand. `make blocking` makes the other classes from the asynchronous ones.
"""
