"""The metadata store for commands: the files in the data directory, with or without a running server; or the etcd of a
cluster, if the directory or the configuration belongs to one.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from penstock.cli.exits import NOT_FOUND, USAGE, CommandError
from penstock.cli.output import error_console
from penstock.config import ConfigurationError, FrontendConfig, load_frontend_config, load_serve_config
from penstock.config.sources import given_attributes
from penstock.metadata.opening import StoreUrlError, open_metadata_store
from penstock.metadata.remote.settings import MetadataUrlError, read_secret
from penstock.metadata.seals.master_key import (
    MasterKey,
    MasterKeyError,
    load_master_key,
    load_or_make_master_key,
)
from penstock.metadata.seals.seals import front_end_sealers
from penstock.metadata.store.interface import MetadataStore, StoreRefusedError, StoreUnavailableError
from penstock.metadata.store.sealed import sealed
from penstock.metadata.store.sqlite import open_sqlite_store
from penstock.metadata.users.administration import NotFoundError, UserAdministration, UserError
from penstock.metadata.users.seen_register import SeenRegister
from penstock.metadata.users.users import KEYS, USERS
from penstock.runtime.cluster.streams import dial
from penstock.runtime.cluster.tls import cluster_tls
from penstock.runtime.http.tls import TlsError
from penstock.runtime.processes.listening import StartError
from penstock.runtime.processes.user_keys import UserKeys, seal_own_file

Result = TypeVar("Result")


class _Noting(SeenRegister):
    """A change is valid also if its register number cannot be stored; the user gets a warning."""

    def note(self, number: int) -> None:
        try:
            super().note(number)
        except MasterKeyError as error:
            error_console().print(
                f"{error}: restored older records of users are not detected here",
                style="yellow",
                markup=False,
            )


class OpenMetadata:
    """An open store, and the administration of its users."""

    def __init__(self, store: MetadataStore, key_file: Path, *, has_users: bool) -> None:
        self.store = store
        """As it is, seals and all; users are not to be read or written here."""
        self.seen = _Noting(key_file)
        self._key_file = key_file
        self._has_users = has_users
        self._users: UserAdministration | None = None

    @property
    def users(self) -> UserAdministration:
        """Users and keys that are rightly sealed; raises `MasterKeyError`."""
        if self._users is None:
            guarded = sealed(self.store, front_end_sealers(self.master_key()))
            self._users = UserAdministration(guarded, os.urandom, now_ms, self.seen)
        return self._users

    def master_key(self) -> MasterKey:
        """Created at first use; never again while there are users sealed with the old one."""
        return load_or_make_master_key(self._key_file, os.urandom, may_make=not self._has_users)


def now_ms() -> int:
    """The time."""
    return time.time_ns() // 1_000_000


class _MetadataLocation(NamedTuple):
    """The location of the metadata, and the key for its secrets."""

    file: Path | None
    """Of a single server; None: there is a cluster."""
    cluster: ClusterMetadata | None
    key_file: Path


class ClusterMetadata(NamedTuple):
    """The metadata of a cluster."""

    url: str
    config: FrontendConfig | None
    """Of a front end; None: there is nothing but the URL."""


def with_metadata(data: str | None, work: Callable[[OpenMetadata], Awaitable[Result]]) -> Result:
    """Runs `work` on the store of a data directory, or of a cluster; errors become sentences."""
    try:
        place = _local_cluster(data) or _configured(data)
        return asyncio.run(_with_metadata(place, work))
    except ConfigurationError as error:
        raise CommandError(str(error), USAGE) from None
    except NotFoundError as error:
        raise CommandError(str(error), NOT_FOUND) from None
    except StoreRefusedError as error:
        raise CommandError(f"{error}. Give it the cluster's secret and certificate.", USAGE) from None
    except TlsError as error:
        raise CommandError(str(error), USAGE) from None
    except (
        UserError,
        StoreUnavailableError,
        StoreUrlError,
        MetadataUrlError,
        MasterKeyError,
        StartError,
    ) as error:
        raise CommandError(str(error)) from None


def _local_cluster(data: str | None) -> _MetadataLocation | None:
    """The directory may be that of `penstock cluster up`."""
    from penstock.runtime.local_cluster.directory import ClusterDirectory, DirectoryError

    directory = ClusterDirectory(Path(data)) if data is not None else None
    try:
        state = directory.load() if directory is not None else None
    except DirectoryError as error:
        raise CommandError(str(error)) from None
    if directory is None or state is None:
        return None
    return _MetadataLocation(None, ClusterMetadata(state.plan.etcd_url, None), directory.master_key_file)


def _configured(data: str | None) -> _MetadataLocation:
    """The file that `PENSTOCK_CONFIG` names may be that of a front end of a cluster."""
    named = os.environ.get("PENSTOCK_CONFIG")
    file, flags = Path(named) if named else None, {} if data is None else {"data_directory": data}
    if "cluster_metadata" in given_attributes(file):
        front_end = load_frontend_config(file, flags=flags)
        if front_end.cluster_metadata is not None:
            cluster = ClusterMetadata(front_end.cluster_metadata, front_end)
            return _MetadataLocation(None, cluster, Path(front_end.metadata_key_path))
    config = load_serve_config(file, flags=flags)
    return _MetadataLocation(Path(config.metadata_path), None, Path(config.metadata_key_path))


async def _with_metadata(
    place: _MetadataLocation, work: Callable[[OpenMetadata], Awaitable[Result]]
) -> Result:
    store = await _opened(place)
    try:
        has_users = bool((await store.list(USERS)).entries or (await store.list(KEYS)).entries)
        if has_users and place.file is not None and place.key_file.exists():
            seen = SeenRegister(place.key_file)
            keys = UserKeys(load_master_key(place.key_file), seen, seen.load())
            await seal_own_file(place.file, store, keys)  # as the server does when it starts
        return await work(OpenMetadata(store, place.key_file, has_users=has_users))
    finally:
        await store.close()


async def _opened(place: _MetadataLocation) -> MetadataStore:
    if place.cluster is not None:
        config = place.cluster.config
        secret_file = config.cluster_secret_file if config is not None else None
        tls = cluster_tls(config) if config is not None else None
        return await open_metadata_store(
            place.cluster.url,
            read_secret(Path(secret_file)) if secret_file is not None else None,
            partial(dial, tls=tls),
        )
    assert place.file is not None
    try:
        place.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"cannot make {place.file.parent}: {error.strerror or error}. Name another directory with --data."
        ) from None
    return await open_sqlite_store(place.file)
