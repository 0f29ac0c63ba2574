"""The metadata store as commands use it: the files in the data directory, whether a server runs there or not."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from penstock.cli.exits import NOT_FOUND, USAGE, CommandError
from penstock.config import ConfigurationError, ServeConfig, load_serve_config
from penstock.metadata.master_key import MasterKey, MasterKeyError, load_or_make_master_key
from penstock.metadata.store.interface import MetadataStore, StoreUnavailableError
from penstock.metadata.store.sqlite import open_sqlite_store
from penstock.metadata.user_administration import NotFoundError, UserAdministration, UserError

Result = TypeVar("Result")


class OpenMetadata:
    """A store that is open, and the means to change users in it."""

    def __init__(self, store: MetadataStore, config: ServeConfig) -> None:
        self.store = store
        self.users = UserAdministration(store, os.urandom, lambda: time.time_ns() // 1_000_000)
        self._config = config

    async def master_key(self) -> MasterKey:
        """Made at first use; never anew while there are secrets that the old one encrypted."""
        file = Path(self._config.metadata_key_path)
        return load_or_make_master_key(file, os.urandom, may_make=not await self.users.keys())


def with_metadata(data: str | None, work: Callable[[OpenMetadata], Awaitable[Result]]) -> Result:
    """Runs `work` on the store of a data directory; what is wrong becomes a sentence."""
    config_file = os.environ.get("PENSTOCK_CONFIG")
    try:
        config = load_serve_config(
            Path(config_file) if config_file else None,
            flags={} if data is None else {"data_directory": data},
        )
    except ConfigurationError as error:
        raise CommandError(str(error), USAGE) from None
    try:
        return asyncio.run(_with_metadata(config, work))
    except NotFoundError as error:
        raise CommandError(str(error), NOT_FOUND) from None
    except (UserError, StoreUnavailableError, MasterKeyError) as error:
        raise CommandError(str(error)) from None


async def _with_metadata(config: ServeConfig, work: Callable[[OpenMetadata], Awaitable[Result]]) -> Result:
    file = Path(config.metadata_path)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"cannot make {file.parent}: {error.strerror or error}. Name another directory with --data."
        ) from None
    store = await open_sqlite_store(file)
    try:
        return await work(OpenMetadata(store, config))
    finally:
        await store.close()
