"""A process that has imported the packages of streaming sources, and forks their processes, so that they start at once.

Spark starts a Python process for every streaming query, and waits ten seconds for it; no setting changes that. All imports
take 450 ms, and on a busy machine more than ten seconds. So `worker-python` passes its task to this process
(`pool_client.py`), which forks: that takes 32 ms. Without this process, Python is started as usual.

    python worker_pool.py SOCKET      until standard input ends, when its parent has ended
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import traceback
from contextlib import suppress
from typing import Any, NoReturn

_RUN = "pyspark.sql.streaming.python_streaming_source_runner"


def main(place: str) -> None:
    """Listens before it imports: an early client waits a little."""
    sys.path[0] = ""  # as with `python -m`
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
    listener.listen(64)
    _import_everything()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for them
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        asked, _ = listener.accept()
        with asked:
            if os.fork() == 0:
                listener.close()
                _live(asked)


def _import_everything() -> None:
    # Threads do not outlive a fork. This is the one that numpy would begin.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with suppress(ImportError):  # a process that needs a missing package reports it
        importlib.import_module("penstock.pipeline.source.data_source")
        importlib.import_module(_RUN)
        del sys.modules[_RUN]  # which is run, not imported; what it imports stays
    gc.freeze()  # what is there now stays shared


def _live(asked: socket.socket) -> NoReturn:
    """In the child: becomes the requested process."""
    code: Any = 1
    try:
        _take_place(asked)
        threading.Thread(target=_end_with, args=(asked,), daemon=True).start()
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        code = code & 255 if isinstance(code, int) else int(code is not None)
        asked.send(bytes([code]))
        os._exit(code)


def _take_place(asked: socket.socket) -> None:
    """Takes over the streams, directory, environment and arguments of the client."""
    head, streams, _, _ = socket.recv_fds(asked, 4, 3)
    with asked.makefile("rb") as said:
        told = json.loads(said.read(int.from_bytes(head, "big")))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir(told["directory"])
    os.environ.clear()
    os.environ.update(told["environment"])
    further = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [entry for entry in further if entry and entry not in sys.path]
    sys.argv[:] = told["arguments"]


def _end_with(asked: socket.socket) -> None:
    """Spark ends the client that it has started; this process ends with it."""
    asked.recv(1)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
