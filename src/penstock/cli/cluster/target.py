"""The cluster of a command: a directory on this machine, or an etcd anywhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from penstock.cli.exits import NOT_FOUND, UNREACHABLE, USAGE, CommandError

if TYPE_CHECKING:
    from penstock.metadata.store.interface import MetadataStore
    from penstock.runtime.local_cluster.cluster import LocalCluster, Progress

DEFAULT_DIRECTORY = "penstock-cluster"

Result = TypeVar("Result")

ClusterData = Annotated[
    str,
    typer.Option(
        "--data",
        envvar="PENSTOCK_CLUSTER_DATA",
        help="The data directory of the local cluster.",
        metavar="DIR",
        rich_help_panel="Common",
    ),
]
EtcdUrl = Annotated[
    str | None,
    typer.Option(
        "--etcd",
        help="The etcd of a cluster on other machines: etcd://HOST:PORT,…; instead of --data.",
        metavar="URL",
        show_default=False,
        rich_help_panel="Common",
    ),
]
ProcessName = Annotated[
    str,
    typer.Argument(metavar="NODE", help="The node's name, as `cluster status` shows it.", show_default=False),
]


@contextmanager
def cluster_errors() -> Iterator[None]:
    """Turns what may go wrong with a cluster into a sentence and an exit code."""
    from penstock.cluster.local.haproxy import BalancerPlanError
    from penstock.cluster.local.local_plan import PlanError
    from penstock.metadata.store.etcd_settings import EtcdUrlError
    from penstock.metadata.store.interface import StoreRefusedError, StoreUnavailableError
    from penstock.runtime.local_cluster.balancer import BalancerMissingError, BalancerRefusedError
    from penstock.runtime.local_cluster.certificates import AuthorityError
    from penstock.runtime.local_cluster.cluster import StartFailedError, UnknownProcessError
    from penstock.runtime.local_cluster.directory import DirectoryError
    from penstock.runtime.local_cluster.etcd_process import EtcdFailedError, EtcdMissingError

    try:
        yield
    except (PlanError, EtcdUrlError) as error:
        raise CommandError(str(error), USAGE) from None
    except UnknownProcessError as error:
        raise CommandError(str(error), NOT_FOUND) from None
    except StoreRefusedError as error:
        raise CommandError(str(error), USAGE) from None
    except StoreUnavailableError as error:
        raise CommandError(
            f"{error}. Existing queues continue; no queue can be created or moved until etcd is back.",
            UNREACHABLE,
        ) from None
    except (
        StartFailedError,
        DirectoryError,
        AuthorityError,
        EtcdMissingError,
        EtcdFailedError,
        BalancerMissingError,
        BalancerRefusedError,
        BalancerPlanError,
    ) as error:
        raise CommandError(str(error)) from None


def local_cluster(data: str, progress: Progress | None = None) -> LocalCluster:
    """The cluster of a directory; raises `CommandError` where there is none."""
    from penstock.runtime.local_cluster.cluster import LocalCluster
    from penstock.runtime.local_cluster.directory import ClusterDirectory

    directory = ClusterDirectory(Path(data))
    if directory.load() is None:
        raise CommandError(
            f"there is no cluster in {directory.path}: `penstock cluster up` starts one there; name another directory "
            "with --data, or the etcd of a cluster elsewhere with --etcd",
            NOT_FOUND,
        )
    return LocalCluster(directory, progress)


def running_cluster(data: str, progress: Progress | None = None) -> LocalCluster:
    """The same; raises `CommandError` where none of its processes runs."""
    cluster = local_cluster(data, progress)
    if not cluster.state.up:
        again = "" if data == DEFAULT_DIRECTORY else f" --data {data}"
        raise CommandError(
            f"the cluster in {cluster.directory.path} does not run; `penstock cluster up{again}` starts it",
            UNREACHABLE,
        )
    return cluster


def etcd_of(data: str, etcd: str | None) -> str:
    """The URL of the cluster's etcd."""
    return etcd if etcd is not None else running_cluster(data).plan.etcd_url


def with_store(
    url: str, work: Callable[[MetadataStore], Awaitable[Result]], secret: bytes | None = None
) -> Result:
    """Runs `work` on the cluster's metadata; with the cluster's secret seals are checked."""
    import asyncio

    return asyncio.run(_with_store(url, work, secret))


async def _with_store(
    url: str, work: Callable[[MetadataStore], Awaitable[Result]], secret: bytes | None
) -> Result:
    from penstock.metadata.seals.seals import layout_sealers
    from penstock.metadata.store.etcd import open_etcd_store
    from penstock.metadata.store.sealed import sealed

    store: MetadataStore = await open_etcd_store(url)
    if secret is not None:
        store = sealed(store, layout_sealers(secret))
    try:
        return await work(store)
    finally:
        await store.close()
