"""Checks when a process of a cluster starts whether its metadata store is protected, and logs one line if it is not.

A writer to the store cannot read messages (its entries are sealed), but it can stop the cluster.
"""

from __future__ import annotations

import logging

from penstock.metadata.remote.settings import SCHEMES
from penstock.metadata.store.etcd_guard import complaints, takes_anybody
from penstock.metadata.store.etcd_settings import EtcdUrlError, parse_etcd_url
from penstock.metadata.store.interface import StoreUnavailableError
from penstock.runtime.cluster.tls import ClusterTls
from penstock.wire.credentials import is_this_machine

_logger = logging.getLogger(__name__)

GUIDE = "docs/guide/cluster.md#your-etcd"


async def why_unguarded(url: str, tls: ClusterTls | None) -> str | None:
    """One sentence about missing protection; None: nothing is missing."""
    scheme, _, place = url.partition("://")
    if scheme in SCHEMES:
        hosts = [one.rpartition(":")[0].strip("[]") for one in place.partition("?")[0].split(",")]
        if tls is not None or all(is_this_machine(host) for host in hosts):
            return None
        return "the connections to the cluster's metadata servers do not use TLS: set cluster.tls_certificate for all processes"
    if scheme not in ("etcd", "etcds"):
        return None
    try:
        settings = parse_etcd_url(url)
        found = list(complaints(settings, await takes_anybody(settings)))
    except (EtcdUrlError, StoreUnavailableError):
        return None  # the caller reports it
    if not found:
        return None
    members = ", ".join(map(str, settings.endpoints))
    return f"the cluster's etcd ({members}) {', and '.join(found)}. See {GUIDE}"


async def warn_of_unguarded_store(url: str, tls: ClusterTls | None) -> None:
    """Says it in the log, if there is something to say; nothing is kept from starting."""
    why = await why_unguarded(url, tls)
    if why is not None:
        _logger.warning("%(reason)s", {"reason": why})
