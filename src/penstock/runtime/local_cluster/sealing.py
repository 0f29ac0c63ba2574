"""Seals the entries of an earlier version in a local cluster's etcd, before the first process reads them.

The layout is sealed without a question, because nothing in it gives access. Users are different: until now that etcd
accepted writes from everyone, so the user who starts the cluster sees the list of users, and must confirm it.
"""

from __future__ import annotations

import asyncio
import os
import time

import msgspec

from penstock.metadata.remote.settings import MetadataUrlError, read_secret
from penstock.metadata.seals import sealing
from penstock.metadata.seals.master_key import MasterKeyError, load_or_make_master_key
from penstock.metadata.seals.seals import QUEUE_KINDS, front_end_sealers, layout_sealers
from penstock.metadata.store.etcd import open_etcd_store
from penstock.metadata.store.interface import StoreUnavailableError, VersionConflictError
from penstock.metadata.users.seen_register import SeenRegister
from penstock.runtime.local_cluster.directory import ClusterDirectory

KEPT_LAYOUT = ("cluster/queues/", "cluster/partitions/", "cluster/ids")
"""Nodes write the other entries again when they start."""


class UsersUnsealedError(Exception):
    """There are unconfirmed users; the message names them and says what to do."""


def seal_from_before(directory: ClusterDirectory, url: str, *, users: bool) -> None:
    """Seals what is in the cluster's own etcd; with `users` those too. Raises `UsersUnsealedError` where they must be and may not.

    Raises `StoreUnavailableError`, `MasterKeyError` and `MetadataUrlError` as well.
    """
    asyncio.run(_seal(directory, url, users=users))
    directory.change(lambda state: msgspec.structs.replace(state, sealed=True))


async def _seal(directory: ClusterDirectory, url: str, *, users: bool) -> None:
    store = await open_etcd_store(url)
    try:
        has_users = bool((await store.list("users/")).entries or (await store.list("keys/")).entries)
        key = load_or_make_master_key(directory.master_key_file, os.urandom, may_make=not has_users)
        found = await sealing.look(store, key)
        if found.users and not found.sealed:
            if not users:
                raise UsersUnsealedError(
                    "this cluster is from a version whose etcd accepted writes from every program on this machine. It has "
                    f"{_named(found, root=True)} and {_named(found, root=False)}: if you know all of them, and their keys, start it once "
                    "with `penstock cluster up --seal-users`; if not, begin another cluster in another directory with --data"
                )
            seen = SeenRegister(directory.master_key_file)
            await sealing.seal_users(store, key, found, lambda: time.time_ns() // 1_000_000, seen)
        await sealing.seal_kinds(store, front_end_sealers(key), QUEUE_KINDS)
        await sealing.seal_kinds(store, layout_sealers(read_secret(directory.secret_file)), KEPT_LAYOUT)
    finally:
        await store.close()


def _named(found: sealing.FoundUsers, *, root: bool) -> str:
    """Users with their keys: one that was given to another user would not be noticed otherwise."""
    users = [user for user, _ in found.users.values() if user.root == root]
    keys_of: dict[str, list[str]] = {user.user_id: [] for user in users}
    for key, _ in found.keys.values():
        if key.user_id in keys_of:
            keys_of[key.user_id].append(key.key_id)
    named = [f"{user.name} ({', '.join(sorted(keys_of[user.user_id])) or 'no keys'})" for user in users]
    return f"the {'roots' if root else 'users'} {', '.join(sorted(named)) or '(none)'}"


TROUBLES = (UsersUnsealedError, StoreUnavailableError, MasterKeyError, MetadataUrlError, VersionConflictError)
"""Errors that may prevent it."""
