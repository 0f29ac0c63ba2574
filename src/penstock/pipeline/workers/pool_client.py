"""What stands before a process that the pool has forked: Spark starts it, reads what it says and ends it.

    python -I -S pool_client.py -m MODULE [ARGUMENT]…

It says to the pool at `PENSTOCK_WORKER_POOL` what is to be run, gives it its own streams, and ends as that one ends. It
imports next to nothing, so as to be quick. Where there is no pool it becomes an ordinary Python.
"""

import json
import os
import socket
import sys


def main(arguments: list[str]) -> int:
    """The code that it ended with."""
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
