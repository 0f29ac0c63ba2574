"""Whether an etcd is protected by passwords or certificates, and by TLS. Found out by an unauthenticated read."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

from penstock.metadata.store.etcd_client import EtcdClient
from penstock.metadata.store.etcd_errors import EtcdError
from penstock.metadata.store.etcd_messages import RangeAnswer
from penstock.metadata.store.etcd_settings import EtcdSettings, TlsFiles
from penstock.metadata.store.interface import StoreUnavailableError

PROBE_SECONDS = 2.0


async def takes_anybody(settings: EtcdSettings) -> list[str]:
    """The members that can be read without a password and without a certificate."""
    members = settings.endpoints
    found = await asyncio.gather(*(_lets_in(replace(settings, endpoints=(one,))) for one in members))
    return [str(one) for one, lets_in in zip(members, found, strict=True) if lets_in]


async def _lets_in(settings: EtcdSettings) -> bool:
    tls = TlsFiles(ca=settings.tls.ca) if settings.tls is not None else None
    nobody = replace(
        settings,
        user=None,
        password=None,
        tls=tls,
        timeout_seconds=min(settings.timeout_seconds, PROBE_SECONDS),
    )
    client = EtcdClient(nobody)
    try:
        request = {"key": f"{settings.namespace}/".encode(), "limit": 1}
        await client.ask("/v3/kv/range", request, RangeAnswer, again=False)
    except (EtcdError, StoreUnavailableError):
        return False  # it refuses, or is not there
    finally:
        client.close()
    return True


def complaints(settings: EtcdSettings, open_members: list[str]) -> Iterator[str]:
    """The problems of an etcd, each in half a sentence."""
    if settings.tls is None:
        yield "is used without TLS, so an attacker on the network can read and change everything"
    if open_members:
        where = "" if len(open_members) == len(settings.endpoints) else f" at {', '.join(open_members)}"
        yield (
            f"accepts every client{where} that reaches it: it requires neither a certificate (--client-cert-auth) nor a password"
        )
