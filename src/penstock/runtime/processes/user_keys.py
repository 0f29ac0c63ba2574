"""The keys with which a process verifies users: the master key, and the last seen number of the register.

They are loaded before the metadata is read, because nothing about users is trusted without them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from penstock.config.sqs import MetadataOptions
from penstock.metadata.seals import sealing
from penstock.metadata.seals.master_key import (
    MasterKey,
    MasterKeyError,
    load_master_key,
    load_or_make_master_key,
)
from penstock.metadata.seals.seals import QUEUE_KINDS, front_end_sealers
from penstock.metadata.store.interface import (
    MetadataStore,
    RememberingStore,
    StoreUnavailableError,
    VersionConflictError,
)
from penstock.metadata.users.register import FIRST_SEAL_WRITES, WriteTurns
from penstock.metadata.users.seen_register import SeenRegister
from penstock.metadata.users.users import KEYS, USERS
from penstock.runtime.processes.listening import StartError
from penstock.wire.backoff import STORE_ABSENT_SECONDS

_logger = logging.getLogger(__name__)


class UserKeys(NamedTuple):
    """What is needed to verify a record of a user."""

    master: MasterKey
    seen: SeenRegister
    seen_number: int

    def noting(self) -> Callable[[int], None]:
        """Remembers numbers; if they cannot be written, this is logged once, and the process remembers them in memory."""
        told = False

        def note(number: int) -> None:
            nonlocal told
            try:
                self.seen.note(number)
            except MasterKeyError as error:
                if not told:
                    told = True
                    _logger.warning(
                        "%(error)s: old records of users are recognized until the next start only",
                        {"error": error},
                    )

        return note


async def open_user_keys(config: MetadataOptions, store: MetadataStore) -> UserKeys:
    """The keys of a configuration; the master key is made if there is nothing yet that it could have sealed.

    Raises `StartError`.
    """
    file = Path(config.metadata_key_path)
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(f"cannot make the directory of {file}: {error.strerror or error}") from None
    _warn_of_writers(file.parent)
    try:
        try:
            master = load_master_key(file)
        except FileNotFoundError:
            has_users = await _has_users(store)
            master = load_or_make_master_key(file, secrets.token_bytes, may_make=not has_users)
        seen = SeenRegister(file)
        return UserKeys(master, seen, seen.load())
    except MasterKeyError as error:
        raise StartError(str(error)) from None


async def _has_users(store: MetadataStore) -> bool:
    """Waits for a store that does not answer, unless another process remembers its contents."""
    while True:
        try:
            return bool((await store.list(KEYS)).entries or (await store.list(USERS)).entries)
        except StoreUnavailableError:
            if isinstance(store, RememberingStore):
                try:
                    return bool((await store.list_known(KEYS)).entries)
                except StoreUnavailableError:
                    pass
        await asyncio.sleep(STORE_ABSENT_SECONDS)


async def seal_own_file(file: Path, store: MetadataStore, keys: UserKeys) -> None:
    """Seals once what an earlier version wrote into the file of a single server; raises `StartError`.

    Only if no register was ever seen here, and only in a file that only the server's own user can write: a user who could
    write there could read the master key as well.
    """
    if keys.seen_number:
        return
    found = await sealing.look(store, keys.master)
    if found.register is not None or not found.unsealed:
        return
    _check_rights(file)
    turns = WriteTurns(FIRST_SEAL_WRITES)
    while True:
        try:
            await sealing.seal_users(store, keys.master, found, _now_ms, keys.seen)
            break
        except VersionConflictError:  # another process of the same server is about it
            if not turns.lost():
                raise StartError(f"another process keeps changing the users in {file}: try again") from None
            found = await sealing.look(store, keys.master)
            if found.register is not None:
                return
    sealed = await sealing.seal_kinds(store, front_end_sealers(keys.master), QUEUE_KINDS)
    roots = sorted(user.name for user, _ in found.users.values() if user.root)
    _logger.warning(
        "sealed the entries of an earlier version in %(file)s: %(users)d users (roots: "
        "%(roots)s), %(keys)d access keys, %(queues)d queue entries",
        {
            "file": file,
            "users": len(found.users),
            "roots": ", ".join(roots) or "none",
            "keys": len(found.keys),
            "queues": sealed,
        },
    )


def _warn_of_writers(directory: Path) -> None:
    """Warns of other writers: if one deletes the metadata and the last seen number, the next start has no users.

    This does not prevent the start: volumes of containers are such directories, without other users.
    """
    mode = stat.S_IMODE(directory.stat().st_mode)
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        _logger.warning(
            "every user of this machine may replace or delete files in %(directory)s, users and keys "
            "included: run `chmod 700 %(directory)s`",
            {"directory": directory},
        )


def _check_rights(file: Path) -> None:
    status = file.stat()
    if status.st_uid not in (0, os.geteuid()) or stat.S_IMODE(status.st_mode) & 0o022:
        raise StartError(
            f"an earlier version wrote users or policies into {file} without seals, and others may have changed them since: only "
            f"its owner should be able to write to it (`chmod 600 {file}`). Check `penstock user list`, and confirm the users with `penstock "
            "user seal`"
        )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
