"""What DuckDB answers, asked by any thread: each question has a connection of its own, for the shared one has one answer."""

from __future__ import annotations

from typing import Any

import duckdb


def answer(query: str) -> list[Any]:
    with duckdb.connect() as connection:
        return connection.execute(query).fetchall()
