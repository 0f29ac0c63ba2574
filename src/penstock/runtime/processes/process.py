"""The server as a separate process: signals, logging, exit codes.

SIGTERM or SIGINT once: a clean stop in the order of `broker`, exit code 0. A second one meanwhile: the process ends at
once, exit code 1; nothing that was acknowledged is lost. If a node fails (the disk reports an error, or a defect shows),
the process stops with exit code 1 rather than continue with state that may be wrong; a supervisor starts it again, and
recovery restores the true state.
"""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

import uvloop

from penstock.config.frontend import FrontendConfig
from penstock.config.metadata_server import MetadataServerConfig
from penstock.config.processors import Processors
from penstock.config.serve import ServeConfig
from penstock.runtime.engine.processors import SharedProcessor, use_processors
from penstock.runtime.http.sqs_server import SqsServer
from penstock.runtime.http.tls import TlsError
from penstock.runtime.processes import collector
from penstock.runtime.processes.broker import Broker, open_broker
from penstock.runtime.processes.logs import set_up_logging
from penstock.runtime.processes.remote_front_end import RemoteFrontEnd, open_front_end

if TYPE_CHECKING:
    from penstock.config.node import NodeConfig
    from penstock.runtime.cluster.tls import ClusterTls
    from penstock.runtime.native.tls import NativeTls
    from penstock.runtime.processes.front_end import ClusterFrontEnd
    from penstock.runtime.processes.metadata import MetadataProcess
    from penstock.runtime.processes.node import ClusterNode

logger = logging.getLogger(__name__)

SWITCH_SECONDS = 0.001
"""How soon the flush thread gets the interpreter back from a busy loop once its sync is done (Python's 5 ms
is twenty syncs). Measured from 5 ms down to 0.03 ms: the difference is lost in the noise (`docs/benchmarks.md`)."""

FILES_BESIDE_CONNECTIONS = 2_048
"""For journals, segments, monitoring, and connections that are being refused."""


class Service(Protocol):
    """The contents of a process."""

    @property
    def failure(self) -> BaseException | None:
        """Why it stopped by itself, if it did."""
        ...

    @property
    def sqs_server(self) -> SqsServer | None:
        """Its SQS server, if it has one."""
        ...

    @property
    def cluster_tls(self) -> ClusterTls | None:
        """The TLS for other processes of its cluster, if they use TLS."""
        ...

    @property
    def native_tls(self) -> NativeTls | None:
        """The TLS for native clients, if it has TLS for them."""
        ...

    @property
    def partner_threads(self) -> tuple[int, ...]:
        """Threads that hand the interpreter's lock to the event loop's and take it back, all the time."""
        ...

    async def ended(self) -> None:
        """Returns when it has failed or was closed."""
        ...

    async def close(self) -> None:
        """Finishes what has begun and stops."""
        ...


Running = TypeVar("Running", bound=Service)


def run_server(config: ServeConfig, announce: Callable[[Broker], None]) -> int:
    """Serves until a signal or a failure; returns the exit code. `announce` is called once it listens.

    Raises `StartError` where it cannot start.
    """
    set_up_logging(config.log_level, config.log_format)
    (native, sqs), warning = _allow_files(config.max_connections, _sqs_connections(config))
    fitted = replace(config, max_connections=native, sqs_max_connections=max(1, sqs))
    return _run(lambda: open_broker(fitted), announce, warning, config.processors)


def run_front_end(config: FrontendConfig, announce: Callable[[RemoteFrontEnd], None]) -> int:
    """The same for a separate front end."""
    set_up_logging(config.log_level, config.log_format)
    (sqs,), warning = _allow_files(_sqs_connections(config))
    fitted = replace(config, sqs_max_connections=max(1, sqs))
    return _run(lambda: open_front_end(fitted), announce, warning, config.processors)


def run_cluster_front_end(config: FrontendConfig, announce: Callable[[ClusterFrontEnd], None]) -> int:
    """The same for a front end of a cluster."""
    from penstock.runtime.processes.front_end import (
        open_cluster_front_end,  # a single server needs none of it
    )

    set_up_logging(config.log_level, config.log_format)
    native = ServeConfig.max_connections if config.native_listen is not None else 0
    (sqs, native), warning = _allow_files(_sqs_connections(config), native)
    fitted = replace(config, sqs_max_connections=max(1, sqs))
    return _run(
        lambda: open_cluster_front_end(fitted, native_connections=max(1, native)),
        announce,
        warning,
        config.processors,
    )


def run_metadata_server(config: MetadataServerConfig, announce: Callable[[MetadataProcess], None]) -> int:
    """The same for a metadata server."""
    from penstock.runtime.processes.metadata import open_metadata_service  # a single server needs none of it

    set_up_logging(config.log_level, config.log_format)
    (connections,), warning = _allow_files(config.metadata_max_connections)
    fitted = replace(config, metadata_max_connections=connections)
    return _run(lambda: open_metadata_service(fitted), announce, warning, config.processors)


def run_node(config: NodeConfig, announce: Callable[[ClusterNode], None]) -> int:
    """The same for a node of a cluster."""
    from penstock.runtime.processes.node import open_cluster_node  # a single server needs none of it
    from penstock.wire.reader_session import MAX_READERS

    set_up_logging(config.log_level, config.log_format)
    readers = MAX_READERS if config.reader_listen is not None else 0
    (connections, _), warning = _allow_files(config.max_connections, readers)
    fitted = replace(config, max_connections=connections)
    return _run(lambda: open_cluster_node(fitted), announce, warning, config.processors)


def _run(
    open_service: Callable[[], Awaitable[Running]],
    announce: Callable[[Running], None],
    warning: str | None,
    processors: Processors,
) -> int:
    use_processors(processors)
    sys.setswitchinterval(SWITCH_SECONDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(open_service, announce, warning, processors))


async def _serve(
    open_service: Callable[[], Awaitable[Running]],
    announce: Callable[[Running], None],
    warning: str | None,
    processors: Processors,
) -> int:
    service = await open_service()
    if warning is not None:  # not earlier: a process that cannot start prints only the reason
        logger.warning(warning)
    stop = asyncio.Event()
    _stop_on_signals(stop)
    _reload_on_signal(service)
    collector.begin()
    thawing = asyncio.ensure_future(_thaw_at_times())
    shared = SharedProcessor(service.partner_threads if processors == "auto" else ())
    shared.start()
    announce(service)
    asked = asyncio.ensure_future(stop.wait())
    failed = asyncio.ensure_future(service.ended())
    await asyncio.wait((asked, failed), return_when=asyncio.FIRST_COMPLETED)
    for task in (asked, failed, thawing):
        task.cancel()
    shared.stop()
    await service.close()
    if service.failure is not None:
        return 1
    logger.info("stopped; every acknowledged message is on disk")
    return 0


async def _thaw_at_times() -> None:
    while True:
        await asyncio.sleep(collector.THAW_SECONDS)
        collector.thaw()


def _sqs_connections(config: ServeConfig | FrontendConfig) -> int:
    return config.sqs_max_connections if config.sqs_listen is not None else 0


def _allow_files(*connections: int) -> tuple[tuple[int, ...], str | None]:
    """Every connection is an open file, and the usual limit of a shell is 1,024: so many files are asked for as all ports
    together need. Returns how many connections each port can take, and what to warn of, if anything.
    """
    wanted = sum(connections) + FILES_BESIDE_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections, None
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most >= wanted:
        return connections, None
    fitting = fitting_connections(most, connections)
    if most >= max(connections) + FILES_BESIDE_CONNECTIONS:
        return fitting, None  # logged only if not even the largest would fit
    taken = " and ".join(
        f"{few} connections instead of {many}" for few, many in zip(fitting, connections, strict=True) if many
    )
    return (
        fitting,
        f"this process may open {most} files, so that it takes {taken}; raise its limit (ulimit -n)",
    )


def fitting_connections(files: int, connections: Sequence[int]) -> tuple[int, ...]:
    """How many of these connections each port can accept with so many file descriptors.

    The rest is for the server itself: a server that cannot open its own files stops, and clients that open many
    connections could cause that.
    """
    for_connections = files - min(FILES_BESIDE_CONNECTIONS, files // 2)
    wanted = sum(connections)
    if wanted <= for_connections:
        return tuple(connections)
    return tuple(min(many, max(1, many * for_connections // wanted)) for many in connections)


def _stop_on_signals(stop: asyncio.Event) -> None:
    def on_signal(name: str) -> None:
        if stop.is_set():
            logger.warning("received %(signal)s again: stopping at once", {"signal": name})
            logging.shutdown()
            os._exit(1)
        logger.info("received %(signal)s: stopping. A second signal stops at once", {"signal": name})
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number.name)


def _reload_on_signal(service: Service) -> None:
    """SIGHUP takes over renewed certificates; connections that are open keep the old ones."""

    def reload() -> None:
        if service.sqs_server is not None:
            _reload("certificate", service.sqs_server.reload_certificate)
        if service.native_tls is not None:
            _reload("certificate for native clients", service.native_tls.reload)
        if service.cluster_tls is not None:
            _reload("certificate for the cluster", service.cluster_tls.reload)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reload)


def _reload(what: str, reload: Callable[[], None]) -> None:
    try:
        reload()
    except TlsError as error:
        logger.error(
            "could not reload the %(what)s; the old one stays in use: %(error)s",
            {"what": what, "error": error},
        )
    else:
        logger.info("reloaded the %(what)s", {"what": what})
