"""What a process needs of its cluster before anything else: the secret, the certificate, and the metadata store by its URL."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from penstock.cluster.layout.entries import NODES, QUEUES
from penstock.config.cluster import ClusterOptions, Seals
from penstock.metadata.opening import StoreUrlError, open_metadata_store
from penstock.metadata.remote.settings import MetadataUrlError, read_secret
from penstock.metadata.seals.seals import LAYOUT_KINDS, is_wrongly_sealed, layout_sealers
from penstock.metadata.store.etcd_settings import without_password
from penstock.metadata.store.interface import MetadataStore, StoreRefusedError, StoreUnavailableError
from penstock.metadata.store.sealed import sealed
from penstock.runtime.cluster.streams import dial
from penstock.runtime.cluster.tls import ClusterTls, cluster_tls
from penstock.runtime.http.tls import TlsError
from penstock.runtime.processes.listening import SettingError, StrangerError
from penstock.wire.backoff import STORE_ABSENT_SAID_SECONDS, STORE_ABSENT_SECONDS, Reminders

logger = logging.getLogger(__name__)

SLOW_SECONDS = 1.5
"""Who starts a process by hand hears after so long why nothing happens yet."""


async def open_cluster_store(
    url: str,
    secret: bytes,
    tls: ClusterTls | None = None,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    seals: Seals = "required",
) -> MetadataStore:
    """The store of a URL, once it answers: a process that is started while etcd is away begins when it is back.

    What it holds of the layout is sealed with the cluster's secret; `seals` says whether it must be.

    Raises `SettingError` for a URL that cannot be followed, and `StrangerError` where metadata servers refuse this process, or
    where the layout is sealed with another secret.
    """
    accepted = LAYOUT_KINDS if seals == "optional" else ()
    store = await _open(url, secret, tls, pause)
    try:
        await _check_secret(store, secret)
    except BaseException:
        await store.close()
        raise
    return sealed(store, layout_sealers(secret), accepted)


async def _check_secret(store: MetadataStore, secret: bytes) -> None:
    """To a process with another secret the cluster would look empty, and it would begin to manage it."""
    sealers = layout_sealers(secret)
    for kind in (NODES, QUEUES):
        try:
            entries = (await store.list(kind)).entries
        except StoreUnavailableError:
            return  # followers of the store check it again
        wrong = [entry.key for entry in entries if is_wrongly_sealed(sealers[kind], *entry[:2])]
        if len(wrong) < len(entries):
            return  # another process shares the secret, or writes no seals
        if wrong:
            raise StrangerError(
                f"the cluster's metadata is sealed with another secret than this process has: all of its {len(wrong)} entries below "
                f"{kind}. Give it the cluster's secret"
            )


async def _open(
    url: str, secret: bytes, tls: ClusterTls | None, pause: Callable[[float], Awaitable[None]]
) -> MetadataStore:
    clock = asyncio.get_running_loop().time
    reminders = Reminders(STORE_ABSENT_SAID_SECONDS)
    while True:
        try:
            if reminders.any_yet:
                return await open_metadata_store(url, secret, partial(dial, tls=tls))
            with telling_of_a_wait(url):
                return await open_metadata_store(url, secret, partial(dial, tls=tls))
        except StoreUrlError as error:
            raise SettingError(f"cannot use --cluster {without_password(url)}: {error}") from None
        except StoreRefusedError as error:
            raise StrangerError(str(error)) from None
        except StoreUnavailableError as error:
            if reminders.is_due(clock()):
                logger.warning(
                    "cannot reach the cluster's metadata at %(store)s; waiting until it answers: %(error)s",
                    {"store": without_password(url), "error": error},
                )
        await pause(STORE_ABSENT_SECONDS)


@contextmanager
def telling_of_a_wait(url: str) -> Iterator[None]:
    """Says once, if what is done here takes longer than a moment, that it is the metadata that is waited for."""
    sentence = (
        "the cluster's metadata at %s does not answer; this process continues to try, and starts when it does"
    )
    shown = without_password(url)
    timer = asyncio.get_running_loop().call_later(SLOW_SECONDS, logger.warning, sentence, shown)
    try:
        yield
    finally:
        timer.cancel()


def cluster_secret(file: str) -> bytes:
    """The cluster's secret; raises `SettingError`."""
    try:
        return read_secret(Path(file))
    except MetadataUrlError as error:
        raise SettingError(str(error)) from None


def cluster_certificate(config: ClusterOptions) -> ClusterTls | None:
    """The certificate of the process for other processes, if they use TLS; raises `SettingError`."""
    try:
        return cluster_tls(config)
    except TlsError as error:
        raise SettingError(str(error)) from None
