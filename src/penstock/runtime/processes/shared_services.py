"""What all servers of a process share: users and other metadata, and the usage record.

Opened before the servers, with the metadata read and the master key loaded. The usage record begins when the engine can be
asked. Closed after them: first the record is sent to its log, while the engine is there. Later rows stay in its directory
for the next process.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from penstock.config.frontend import FrontendConfig
from penstock.config.serve import ServeConfig
from penstock.frontend.engine import EngineLink
from penstock.frontend.queues.directory import QueueDirectory
from penstock.frontend.queues.native_names import DefaultAccount
from penstock.frontend.throttle.throttle import Throttle
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.mirror.mirror import MetadataMirror
from penstock.metadata.seals.seals import front_end_sealers
from penstock.metadata.store.interface import MetadataStore, StoreUnavailableError
from penstock.metadata.store.sealed import sealed
from penstock.metadata.store.sqlite import open_sqlite_store
from penstock.metadata.users.directory import UserDirectory
from penstock.metadata.users.users import KEYS, opens_any
from penstock.runtime.disk.spool_directory import SpoolDirectory
from penstock.runtime.processes.listening import StartError
from penstock.runtime.processes.user_keys import UserKeys, open_user_keys, seal_own_file
from penstock.runtime.usage.sender import UsageSender
from penstock.usage.collector import UsageCollector, UsageTotals

SharedServicesConfig = ServeConfig | FrontendConfig


class SharedServices:
    """Made by `open_shared_services` and `shared_services`."""

    def __init__(
        self,
        config: SharedServicesConfig,
        mirror: MetadataMirror,
        store: MetadataStore | None,
        keys: UserKeys,
    ) -> None:
        self._config = config
        self._store = store
        self.mirror = mirror
        self.users = UserDirectory(mirror.cache, keys.master, keys.seen_number, keys.noting())
        self.home = DefaultAccount(config.sqs_account, config.sqs_region)
        self.queues = QueueDirectory(self.home, mirror.cache)
        """For a server that only asks for policies."""
        self.throttle = Throttle(mirror.cache)
        """One for all servers: a user of two of them has one limit."""
        self.link_secret = keys.master.derived("link 1")
        """A secret that only front ends of one server know."""
        self._usage: UsageCollector | None = None
        self._sender: UsageSender | None = None

    @property
    def metadata(self) -> MetadataCache:
        """Users, policies, tags and limits."""
        return self.mirror.cache

    @property
    def usage(self) -> UsageCollector:
        """The usage record."""
        assert self._usage is not None, "the record of usage has not begun"
        return self._usage

    def usage_totals(self) -> UsageTotals:
        """The counters of usage rows so far."""
        return self.usage.totals()

    def begin_usage(self, name: str, link: EngineLink) -> None:
        """Requests are recorded from now on; `name` is what the log calls this process."""
        self._usage = UsageCollector(
            SpoolDirectory(self._config.usage_path),
            name,
            token=secrets.token_bytes(16),
            spool_bytes=self._config.usage_spool_bytes,
        )
        self._sender = UsageSender(self._usage, link)
        self._sender.start()

    async def hand_on(self) -> None:
        """Sends recorded rows to their log; the engine must still be there."""
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


async def shared_services(
    config: SharedServicesConfig, mirror: MetadataMirror, keys: UserKeys
) -> SharedServices:
    """The metadata of a mirror that stays the caller's, who has opened its store with the keys; raises `StartError`."""
    await mirror.ready.wait()
    _check_key(config, mirror, keys)
    return SharedServices(config, mirror, None, keys)


async def open_shared_services(config: SharedServicesConfig) -> SharedServices:
    """The metadata in the file of a single server, read; raises `StartError`."""
    plain = await _open_store(config)
    try:
        keys = await open_user_keys(config, plain)
        await seal_own_file(Path(config.metadata_path), plain, keys)
        keys = keys._replace(seen_number=keys.seen.load())
    except BaseException:
        await plain.close()
        raise
    store = sealed(plain, front_end_sealers(keys.master))
    mirror = MetadataMirror(store)
    try:
        mirror.start()
        await mirror.ready.wait()
        _check_key(config, mirror, keys)
        return SharedServices(config, mirror, store, keys)
    except BaseException:
        await mirror.close()
        await store.close()
        raise


async def _open_store(config: SharedServicesConfig) -> MetadataStore:
    file = Path(config.metadata_path)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return await open_sqlite_store(file)
    except StoreUnavailableError as error:
        raise StartError(f"cannot use the metadata: {error}") from None
    except OSError as error:
        raise StartError(f"cannot use the metadata file {file}: {error.strerror or error}") from None


def _check_key(config: SharedServicesConfig, mirror: MetadataMirror, keys: UserKeys) -> None:
    """Raises if no user could be admitted with this master key."""
    if not opens_any(keys.master, (entry.value for entry in mirror.cache.list(KEYS))):
        raise StartError(
            f"{config.metadata_key_path} is not the master key that the users' access keys were encrypted and sealed with, so "
            "no user would have access: name the file that the other front ends use (metadata.key_file). If an earlier "
            "version wrote the users, check them and seal them with `penstock user seal`"
        )
