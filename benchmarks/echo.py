"""What the loopback network can do by itself: 1 KiB there and back over raw blocking sockets, two processes.

Run as a module it is the far end: it prints its port, echoes one connection and ends with it.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time

from benchmarks.figures import Latency, latency

MESSAGE_BYTES = 1024
_TIMEOUT_SECONDS = 30.0


def echo_round_trips(rounds: int) -> Latency:
    """The time of single round trips, one after the other."""
    far = subprocess.Popen([sys.executable, "-m", "benchmarks.echo"], stdout=subprocess.PIPE)
    try:
        assert far.stdout is not None
        port = int(far.stdout.readline())
        with socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_SECONDS) as near:
            near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            near.settimeout(None)
            return latency(_exchange(near, rounds))
    finally:
        if far.stdout is not None:
            far.stdout.close()
        far.terminate()
        far.wait(_TIMEOUT_SECONDS)


def _exchange(near: socket.socket, rounds: int) -> list[int]:
    message = bytes(MESSAGE_BYTES)
    samples: list[int] = []
    for _ in range(rounds):
        started = time.perf_counter_ns()
        near.sendall(message)
        missing = MESSAGE_BYTES
        while missing:
            received = len(near.recv(missing))
            if not received:
                raise ConnectionError("the far end of the echo is gone")
            missing -= received
        samples.append(time.perf_counter_ns() - started)
    return samples


def _far_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        connection, _ = listener.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := connection.recv(MESSAGE_BYTES):
                connection.sendall(data)


if __name__ == "__main__":
    _far_end()
