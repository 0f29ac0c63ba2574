"""What all doors of a process share: users and other metadata, and the record of usage.

Opened before the doors, with the metadata read and the master key loaded; the record of usage begins when the engine can be
asked. Closed after them: first the record is handed on to its log, while the engine is there; what is recorded after that
stays in its directory for the next process.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from penstock.config.frontend import FrontendConfig
from penstock.config.serve import ServeConfig
from penstock.frontend.engine import EngineLink
from penstock.frontend.native_names import Home
from penstock.frontend.queue_directory import QueueDirectory
from penstock.frontend.throttle import Throttle
from penstock.metadata.cache import MetadataCache
from penstock.metadata.master_key import MasterKey, MasterKeyError, load_or_make_master_key
from penstock.metadata.mirror import MetadataMirror
from penstock.metadata.store.interface import MetadataStore, StoreUnavailableError
from penstock.metadata.store.sqlite import open_sqlite_store
from penstock.metadata.user_directory import UserDirectory
from penstock.metadata.users import KEYS, opens_any
from penstock.runtime.listening import StartError
from penstock.runtime.usage_sender import UsageSender
from penstock.usage.collector import UsageCollector, UsageTotals

RecordsConfig = ServeConfig | FrontendConfig


class Records:
    """Made by `open_records`."""

    def __init__(
        self,
        config: RecordsConfig,
        mirror: MetadataMirror,
        store: MetadataStore | None,
        master_key: MasterKey,
    ) -> None:
        self._config = config
        self._store = store
        self.mirror = mirror
        self.users = UserDirectory(mirror.cache, master_key)
        self.home = Home(config.sqs_account, config.sqs_region)
        self.queues = QueueDirectory(self.home, mirror.cache)
        """For doors that only ask for policies."""
        self.throttle = Throttle(mirror.cache)
        """One for all doors: whoever comes through two of them has one limit."""
        self.link_secret = master_key.derived("link 1")
        """What front ends of one server know, and nobody else."""
        self._usage: UsageCollector | None = None
        self._sender: UsageSender | None = None

    @property
    def metadata(self) -> MetadataCache:
        """Users, policies, tags and limits."""
        return self.mirror.cache

    @property
    def usage(self) -> UsageCollector:
        """Where requests are recorded."""
        assert self._usage is not None, "the record of usage has not begun"
        return self._usage

    def usage_totals(self) -> UsageTotals:
        """What became of the record of requests so far."""
        return self.usage.totals()

    def begin_usage(self, name: str, link: EngineLink) -> None:
        """Requests are recorded from now on; `name` is what the log calls this process."""
        self._usage = UsageCollector(
            self._config.usage_path,
            name,
            token=secrets.token_bytes(16),
            spool_bytes=self._config.usage_spool_bytes,
        )
        self._sender = UsageSender(self._usage, link)
        self._sender.start()

    async def hand_on(self) -> None:
        """What is recorded goes to its log; the engine must still be there."""
        if self._sender is not None:
            await self._sender.close()

    async def close(self) -> None:
        """Nothing is recorded any more; a mirror that is shared stays the caller's."""
        await self.hand_on()
        if self._usage is not None:
            self._usage.close()
        if self._store is not None:
            await self.mirror.close()
            await self._store.close()


async def open_records(config: RecordsConfig, shared: MetadataMirror | None = None) -> Records:
    """The metadata, read; raises `StartError`. A `shared` mirror stays the caller's."""
    store = await _open_store(config) if shared is None else None
    mirror = shared if store is None else MetadataMirror(store)
    assert mirror is not None
    try:
        if store is not None:
            mirror.start()
        await mirror.ready.wait()
        return Records(config, mirror, store, _master_key(config, mirror))
    except BaseException:
        if store is not None:
            await mirror.close()
            await store.close()
        raise


async def _open_store(config: RecordsConfig) -> MetadataStore:
    file = Path(config.metadata_path)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return await open_sqlite_store(file)
    except StoreUnavailableError as error:
        raise StartError(f"cannot use the metadata: {error}") from None
    except OSError as error:
        raise StartError(f"cannot use the metadata file {file}: {error.strerror or error}") from None


def _master_key(config: RecordsConfig, mirror: MetadataMirror) -> MasterKey:
    has_secrets = bool(mirror.cache.list(KEYS))
    key_file = Path(config.metadata_key_path)
    try:
        key_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(f"cannot make the directory of {key_file}: {error.strerror or error}") from None
    try:
        master_key = load_or_make_master_key(key_file, secrets.token_bytes, may_make=not has_secrets)
    except MasterKeyError as error:
        raise StartError(str(error)) from None
    if not opens_any(master_key, (entry.value for entry in mirror.cache.list(KEYS))):
        raise StartError(
            f"{key_file} is not the master key that the secrets of the users were encrypted with, so nobody could be let in: "
            "name the file that the other front ends have (metadata.key_file)"
        )
    return master_key
