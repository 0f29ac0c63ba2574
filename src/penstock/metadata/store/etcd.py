"""The store in etcd, for clusters: versions are etcd's revisions, conditions are transactions, leases are etcd's own.

It uses the JSON gateway (see `docs/adr/0014-etcd-over-its-json-gateway.md`).
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from typing import Any

from penstock.metadata.store.etcd_client import EtcdClient
from penstock.metadata.store.etcd_errors import (
    CompactedError,
    LeaseGoneError,
    PerhapsDoneError,
    RefusedError,
    TooMuchAtOnceError,
    meaning,
)
from penstock.metadata.store.etcd_messages import (
    KeyValue,
    LeaseAnswer,
    Message,
    Problem,
    RangeAnswer,
    Streamed,
    WriteAnswer,
    range_end,
)
from penstock.metadata.store.etcd_settings import EtcdSettings, parse_etcd_url
from penstock.metadata.store.etcd_watch import EtcdWatch
from penstock.metadata.store.interface import (
    ABSENT,
    Change,
    Entry,
    LeaseEndedError,
    Listing,
    StoreUnavailableError,
    VersionConflictError,
)

ENTRIES_AT_ONCE = 1_000
LISTINGS_TRIED = 3


class EtcdStore:
    """One handle, on the event loop that made it; connects when it is first used."""

    def __init__(self, settings: EtcdSettings) -> None:
        self._client = EtcdClient(settings)
        self._namespace = f"{settings.namespace}/".encode()

    async def get(self, key: str) -> Entry | None:
        answer = await self._read({"key": self._key(key)})
        return self._entry(answer.kvs[0]) if answer.kvs else None

    async def list(self, prefix: str) -> Listing:
        for _ in range(LISTINGS_TRIED):
            try:
                return await self._list(self._key(prefix))
            except CompactedError:
                continue  # while it was read page by page; the next attempt reads a newer state
        raise StoreUnavailableError("etcd compacts faster than the metadata can be read, try again")

    async def put(self, key: str, value: bytes, version: int | None = None, lease: int | None = None) -> int:
        write: dict[str, Any] = {"key": self._key(key), "value": value}
        if lease is not None:
            write["lease"] = lease
        try:
            if version is None:
                return (await self._write("/v3/kv/put", write)).header.revision
            return await self._write_if(key, version, {"request_put": write})
        except LeaseGoneError as error:
            raise LeaseEndedError(f"lease {lease} has ended") from error

    async def delete(self, key: str, version: int | None = None) -> int:
        write = {"key": self._key(key)}
        if version is None:
            answer = await self._write("/v3/kv/deleterange", write)
            return answer.header.revision if answer.deleted else ABSENT
        gone = await self._write_if(key, version, {"request_delete_range": write})
        return gone if version != ABSENT else ABSENT

    def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        return EtcdWatch(self._client, self._key(prefix), len(self._namespace), after).changes()

    async def grant(self, seconds: float) -> int:
        # etcd counts whole seconds, and gives no less than one and a half times its election timeout.
        answer = await self._ask("/v3/lease/grant", {"TTL": max(math.ceil(seconds), 1)}, LeaseAnswer)
        return answer.ID

    async def renew(self, lease: int) -> bool:
        said = await self._ask("/v3/lease/keepalive", {"ID": lease}, Streamed[LeaseAnswer])
        if said.result is None:
            error = meaning(200, Problem.of_stream(said.error))
            if isinstance(error, LeaseGoneError):
                return False
            raise StoreUnavailableError(f"etcd could not renew lease {lease}, try again ({error})")
        return said.result.TTL > 0

    async def revoke(self, lease: int) -> None:
        try:
            await self._ask("/v3/lease/revoke", {"ID": lease}, dict[str, Any])
        except LeaseGoneError:
            return

    async def close(self) -> None:
        self._client.close()

    # -- reading ---------------------------------------------------------------------------------------------

    async def _list(self, prefix: bytes) -> Listing:
        end = range_end(prefix)
        start, limit, revision = prefix, ENTRIES_AT_ONCE, 0
        entries: list[Entry] = []
        while True:
            try:
                page = await self._read(
                    {"key": start, "range_end": end, "limit": limit, "revision": revision or None}
                )
            except TooMuchAtOnceError as error:
                if limit == 1:
                    raise StoreUnavailableError(str(error)) from error
                limit = max(limit // 4, 1)
                continue
            revision = revision or page.header.revision
            entries += [self._entry(one) for one in page.kvs]
            if not page.more:
                return Listing(tuple(entries), revision)
            start = page.kvs[-1].key + b"\0"

    async def _read(self, request: dict[str, Any]) -> RangeAnswer:
        return await self._ask("/v3/kv/range", request, RangeAnswer)

    # -- writing ---------------------------------------------------------------------------------------------

    async def _write(self, path: str, request: dict[str, Any]) -> WriteAnswer:
        return await self._ask(path, request, WriteAnswer, again=False)

    async def _write_if(self, key: str, version: int, operation: dict[str, Any]) -> int:
        """Writes if the entry has this version.

        A version that was once seen never returns, so the write may be repeated when the outcome is unknown: it cannot be
        done twice. A missing entry may be missing again, so then it may not.
        """
        request = {
            "compare": [{"key": self._key(key), "target": "MOD", "result": "EQUAL", "mod_revision": version}],
            "success": [operation],
        }
        uncertain = False
        try:
            answer = await self._transaction(request)
        except PerhapsDoneError as error:
            if version == ABSENT:
                raise self._uncertain(error) from error
            uncertain = True
            try:
                answer = await self._transaction(request)
            except PerhapsDoneError as second:
                raise self._uncertain(second) from second
        if answer.succeeded:
            return answer.header.revision
        if uncertain:
            raise self._uncertain(
                PerhapsDoneError("the entry has changed since, by this write or by another")
            )
        raise VersionConflictError(f"{key} has changed")

    async def _transaction(self, request: dict[str, Any]) -> WriteAnswer:
        return await self._asked("/v3/kv/txn", request, WriteAnswer, again=False)

    # -- asking ----------------------------------------------------------------------------------------------

    async def _ask(
        self, path: str, request: dict[str, Any], kind: type[Message], again: bool = True
    ) -> Message:
        try:
            return await self._asked(path, request, kind, again)
        except PerhapsDoneError as error:
            raise self._uncertain(error) from error

    async def _asked(self, path: str, request: dict[str, Any], kind: type[Message], again: bool) -> Message:
        try:
            return await self._client.ask(path, request, kind, again)
        except TooMuchAtOnceError as error:
            if kind is RangeAnswer:
                raise
            raise StoreUnavailableError(f"{error}; this etcd takes no larger --max-request-bytes") from error
        except (LeaseGoneError, CompactedError):
            raise
        except RefusedError as error:
            raise StoreUnavailableError(str(error)) from error

    def _uncertain(self, error: PerhapsDoneError) -> StoreUnavailableError:
        return StoreUnavailableError(
            f"etcd did not confirm the change; check whether it was made, and try again if not ({error})"
        )

    def _key(self, key: str) -> bytes:
        return self._namespace + key.encode()

    def _entry(self, found: KeyValue) -> Entry:
        return Entry(
            found.key[len(self._namespace) :].decode(errors="replace"), found.value, found.mod_revision
        )


async def open_etcd_store(where: str | EtcdSettings) -> EtcdStore:
    """Opens the etcd of a URL (`parse_etcd_url`); raises `StoreUnavailableError` if no member of it answers."""
    store = EtcdStore(parse_etcd_url(where) if isinstance(where, str) else where)
    try:
        await store.get("")
    except BaseException:
        await store.close()
        raise
    return store
