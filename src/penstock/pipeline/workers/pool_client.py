"""Represents a process that the pool has forked: Spark starts it, reads its output and ends it.

    python -I -S pool_client.py -m MODULE [ARGUMENT]…

It tells the pool at `PENSTOCK_WORKER_POOL` what to run, passes its own streams, and ends with the same exit code. It
imports next to nothing, so that it starts fast. Without a pool it becomes an ordinary Python.
"""

import json
import os
import socket
import sys


def main(arguments: list[str]) -> int:
    """The exit code."""
    told = {"arguments": arguments[1:], "environment": dict(os.environ), "directory": os.getcwd()}
    text = json.dumps(told).encode()
    pool = socket.socket(socket.AF_UNIX)
    try:
        pool.connect(os.environ["PENSTOCK_WORKER_POOL"])
        socket.send_fds(pool, [len(text).to_bytes(4, "big")], [0, 1, 2])
        pool.sendall(text)
    except OSError:
        python = os.environ["PENSTOCK_WORKER_PYTHON"]
        os.execv(python, [python, *arguments])
    code = pool.recv(1)
    return code[0] if code else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
