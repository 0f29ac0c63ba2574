"""What the log of usage holds, read as anybody would: from a running server, as Arrow."""

from __future__ import annotations

from typing import Any

from pyarrow import ipc

import penstock
from penstock.columnar.usage import USAGE_QUEUE
from penstock.model.errors import ErrorCode, PenstockError


def usage_rows(
    url: str, access_key: str | None = None, secret_key: str | None = None
) -> list[dict[str, Any]]:
    """Every row that has arrived by now."""
    with penstock.connect_blocking(url, access_key=access_key, secret_key=secret_key) as client:
        try:
            bodies = [bytes(message.body) for message in client.queue(USAGE_QUEUE).log().messages()]
        except PenstockError as error:
            if error.code is ErrorCode.QUEUE_NOT_FOUND:  # nothing was reported yet
                return []
            raise
    rows: list[dict[str, Any]] = []
    for body in bodies:
        rows += ipc.open_stream(body).read_all().to_pylist()
    return rows
