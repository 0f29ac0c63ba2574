"""The SQLite file of a store: its tables and every statement on them. Synchronous; one thread uses it.

Durable: WAL with a sync at every commit. Several processes may have the file open; SQLite's own locks separate them.
Leases end by the wall clock, which all processes of the machine share and which continues over a restart.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from penstock.metadata.store.interface import (
    ABSENT,
    Change,
    Entry,
    LeaseEndedError,
    Listing,
    StoreUnavailableError,
    VersionConflictError,
    WatchLostError,
)
from penstock.metadata.store.watchers import KEPT_CHANGES, READ_AT_ONCE, News
from penstock.wire.backoff import LOCKED_FILE_SECONDS, Retry

SCHEMA_VERSION = 1
APPLICATION = 0x50454E53  # "PENS": distinguishes our files from any other SQLite file
BUSY_SECONDS = 5.0

SCHEMA = """
CREATE TABLE state (version INTEGER NOT NULL, forgotten INTEGER NOT NULL);
INSERT INTO state VALUES (0, 0);
CREATE TABLE entries (key TEXT PRIMARY KEY, value BLOB NOT NULL, version INTEGER NOT NULL, lease INTEGER) WITHOUT ROWID;
CREATE INDEX entries_by_lease ON entries (lease) WHERE lease IS NOT NULL;
CREATE TABLE changes (version INTEGER PRIMARY KEY, key TEXT NOT NULL, value BLOB);
CREATE TABLE leases (lease INTEGER PRIMARY KEY AUTOINCREMENT, seconds REAL NOT NULL, ends REAL NOT NULL);
"""
UNDER = "key >= :prefix AND substr(key, 1, length(:prefix)) = :prefix"


class SqliteFile:
    """An open file; every error of SQLite becomes a `StoreUnavailableError` that says what to do."""

    def __init__(self, file: Path, clock: Callable[[], float] = time.time, kept: int = KEPT_CHANGES) -> None:
        self._file = file
        self._clock = clock
        self._kept = kept
        with self._said_plainly():
            self._make()
            self._connection = sqlite3.connect(file, timeout=BUSY_SECONDS, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        with self._said_plainly():
            self._connection.close()

    def data_version(self) -> int:
        """Differs from the last answer if another connection has changed the file."""
        with self._said_plainly():
            return self._number("PRAGMA data_version")

    # -- reading ---------------------------------------------------------------------------------------------

    def get(self, key: str) -> Entry | None:
        with self._reading():
            row = self._connection.execute(
                "SELECT key, value, version FROM entries WHERE key = ?", (key,)
            ).fetchone()
            return Entry(*row) if row is not None else None

    def list(self, prefix: str) -> Listing:
        with self._reading():
            rows = self._connection.execute(
                f"SELECT key, value, version FROM entries WHERE {UNDER} ORDER BY key", {"prefix": prefix}
            )
            return Listing(tuple(Entry(*row) for row in rows), self._number("SELECT version FROM state"))

    def news(self, prefix: str, after: int) -> News:
        with self._reading():
            if after < self._number("SELECT forgotten FROM state"):
                raise WatchLostError(f"changes after version {after} are no longer kept")
            rows = self._connection.execute(
                "SELECT key, value, version FROM changes WHERE version > ? ORDER BY version LIMIT ?",
                (after, READ_AT_ONCE),
            ).fetchall()
            changes = [Change(*row) for row in rows if row[0].startswith(prefix)]
            return News(changes, rows[-1][2] if rows else after, len(rows) == READ_AT_ONCE)

    # -- writing ---------------------------------------------------------------------------------------------

    def put(self, key: str, value: bytes, version: int | None, lease: int | None) -> int:
        with self._writing():
            self._check(key, version)
            if lease is not None and not self._has_lease(lease):
                raise LeaseEndedError(f"lease {lease} has ended")
            new = self._record(key, value)
            self._connection.execute(
                "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)", (key, value, new, lease)
            )
            return new

    def delete(self, key: str, version: int | None) -> int:
        with self._writing():
            known = self._check(key, version)
            return ABSENT if known == ABSENT else self._remove(key)

    def grant(self, seconds: float) -> int:
        with self._writing():
            cursor = self._connection.execute(
                "INSERT INTO leases (seconds, ends) VALUES (?, ?)", (seconds, self._clock() + seconds)
            )
            assert cursor.lastrowid is not None
            return cursor.lastrowid

    def renew(self, lease: int) -> bool:
        with self._writing():
            cursor = self._connection.execute(
                "UPDATE leases SET ends = seconds + ? WHERE lease = ?", (self._clock(), lease)
            )
            return cursor.rowcount == 1

    def revoke(self, lease: int) -> None:
        with self._writing():
            self._end(lease)

    def expire(self) -> bool:
        """Ends the leases whose time has come; every operation does so first. Returns whether there were any."""
        with self._said_plainly():
            if not self._due():
                return False
        with self._writing():
            pass
        return True

    # -- inside a transaction --------------------------------------------------------------------------------

    def _number(self, query: str) -> int:
        row = self._connection.execute(query).fetchone()
        if row is None or not isinstance(row[0], int):
            raise sqlite3.DatabaseError(f"no number is where one should be ({query})")
        return row[0]

    def _check(self, key: str, version: int | None) -> int:
        row = self._connection.execute("SELECT version FROM entries WHERE key = ?", (key,)).fetchone()
        known: int = row[0] if row is not None else ABSENT
        if version is not None and version != known:
            raise VersionConflictError(f"{key} has changed")
        return known

    def _has_lease(self, lease: int) -> bool:
        return (
            self._connection.execute("SELECT 1 FROM leases WHERE lease = ?", (lease,)).fetchone() is not None
        )

    def _due(self) -> Sequence[int]:
        rows = self._connection.execute("SELECT lease FROM leases WHERE ends <= ?", (self._clock(),))
        return [lease for (lease,) in rows]

    def _end(self, lease: int) -> None:
        self._connection.execute("DELETE FROM leases WHERE lease = ?", (lease,))
        keys = self._connection.execute("SELECT key FROM entries WHERE lease = ? ORDER BY key", (lease,))
        for (key,) in keys.fetchall():
            self._remove(key)

    def _remove(self, key: str) -> int:
        self._connection.execute("DELETE FROM entries WHERE key = ?", (key,))
        return self._record(key, None)

    def _record(self, key: str, value: bytes | None) -> int:
        self._connection.execute(
            "UPDATE state SET version = version + 1, forgotten = max(forgotten, version + 1 - ?)",
            (self._kept,),
        )
        version, forgotten = self._connection.execute("SELECT version, forgotten FROM state").fetchone()
        self._connection.execute("INSERT INTO changes VALUES (?, ?, ?)", (version, key, value))
        self._connection.execute("DELETE FROM changes WHERE version <= ?", (forgotten,))
        return int(version)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        self.expire()
        with self._said_plainly(), self._transaction("BEGIN"):
            yield

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._said_plainly():
            with self._transaction("BEGIN IMMEDIATE"):
                # In a separate transaction: the following one may be refused and rolled back.
                for lease in self._due():
                    self._end(lease)
            with self._transaction("BEGIN IMMEDIATE"):
                yield

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self._connection.execute(begin)
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    # -- opening and errors ----------------------------------------------------------------------------------

    def _make(self) -> None:
        """Creates an empty file that only its owner may read, before SQLite creates one for everyone."""
        try:
            os.close(os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return
        folder = os.open(self._file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _prepare(self) -> None:
        self._turn_on_write_ahead_log()
        self._connection.execute("PRAGMA synchronous = FULL")
        (result,) = self._connection.execute("PRAGMA quick_check(1)").fetchone()
        if result != "ok":
            raise sqlite3.DatabaseError(result)
        with self._transaction("BEGIN IMMEDIATE"):
            found = self._number("PRAGMA user_version")
            if found == 0 and self._number("SELECT count(*) FROM sqlite_schema") == 0:
                for statement in SCHEMA.split(";"):
                    self._connection.execute(statement)
                self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
                self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            elif self._number("PRAGMA application_id") != APPLICATION:
                raise StoreUnavailableError(f"{self._file} is not a metadata store of Penstock")
            elif found > SCHEMA_VERSION:
                raise StoreUnavailableError(
                    f"{self._file} was written by a newer Penstock (its version is {found}, this program knows "
                    f"{SCHEMA_VERSION}): use that program, or a copy of the file from before"
                )

    def _turn_on_write_ahead_log(self) -> None:
        """While two processes open a new file, SQLite refuses one of them at once instead of waiting."""
        retry = Retry(LOCKED_FILE_SECONDS, BUSY_SECONDS, time.monotonic())
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                pause = retry.pause(time.monotonic()) if "locked" in str(error) else None
                if pause is None:
                    raise
                time.sleep(pause)

    @contextmanager
    def _said_plainly(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise StoreUnavailableError(f"cannot use the metadata store {self._file}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise StoreUnavailableError(
                f"the metadata store {self._file} is damaged ({error}): stop the server and put back a copy of the file"
            ) from error
        except (sqlite3.Error, OSError) as error:
            raise StoreUnavailableError(f"cannot use the metadata store {self._file}: {error}") from error
