"""`/metrics` of a run: a small HTTP server in a separate thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from penstock.metrics.exposition import CONTENT_TYPE, Family, exposition
from penstock.pipeline.errors import PipelineError


@contextmanager
def monitoring(host: str, port: int, families: Callable[[], Iterable[Family]]) -> Iterator[int]:
    """Listens inside; gives the port, which the system chooses where it is 0."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.partition("?")[0] == "/metrics":
                self._answer(200, CONTENT_TYPE, exposition(families()))
            elif self.path == "/health":
                self._answer(200, "text/plain; charset=utf-8", b"ok\n")
            else:
                self._answer(404, "text/plain; charset=utf-8", b"look at /metrics or /health\n")

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # the name it is called with
            """Suppresses the log line of each request."""

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as error:
        raise PipelineError(
            f"cannot listen on {host}:{port}: {error.strerror or error}. Choose another port with --monitoring-listen"
        ) from None
    thread = Thread(target=server.serve_forever, name="penstock-pipeline-monitoring", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
