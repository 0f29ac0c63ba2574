"""A whole etcd on this machine: one member or several, on free ports of one address."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from penstock.runtime.local_cluster.etcd_process import (
    READY_SECONDS,
    STOP_SECONDS,
    EtcdFailedError,
    EtcdMember,
    EtcdProcess,
    find_etcd,
)

STARTS_TRIED = 3


class EtcdCluster:
    """Its members: new ones from `start_etcd`, or those of `plan_members`, on ports that stay the same."""

    def __init__(self, members: Sequence[EtcdProcess]) -> None:
        self.members = list(members)

    @property
    def url(self) -> str:
        """For `open_etcd_store`."""
        return f"etcd://{','.join(one.member.address for one in self.members)}"

    def start(self) -> None:
        """Starts all members that do not run; those that ran before continue with their data."""
        for one in self.members:
            if one.process_id is None:
                one.start()

    async def ready(self, seconds: float = READY_SECONDS) -> None:
        """Returns when every member answers and has a leader; raises `EtcdFailedError`."""
        await asyncio.gather(*(one.ready(seconds) for one in self.members))

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Ends all members, together; waits until they are gone."""
        deadline = time.monotonic() + seconds
        for one in self.members:
            one.ask_to_stop()
        for one in self.members:
            one.stop(deadline - time.monotonic())


def plan_members(
    directory: Path,
    ports: Sequence[tuple[int, int]],
    host: str = "127.0.0.1",
    heartbeat_ms: int = 100,
    election_ms: int = 1_000,
    before: tuple[str, ...] = (),
) -> list[EtcdMember]:
    """One member for each pair of ports (for clients, for the other members)."""
    named = [(f"etcd-{number}", *pair) for number, pair in enumerate(ports, 1)]
    peers = ",".join(f"{name}=http://{host}:{peer}" for name, _, peer in named)
    return [
        EtcdMember(
            name=name,
            directory=directory / name,
            client_port=client,
            peer_port=peer,
            peers=peers,
            host=host,
            heartbeat_ms=heartbeat_ms,
            election_ms=election_ms,
            before=before,
        )
        for name, client, peer in named
    ]


async def start_etcd(
    directory: Path,
    count: int = 1,
    heartbeat_ms: int = 100,
    election_ms: int = 1_000,
    before: tuple[str, ...] = (),
) -> EtcdCluster:
    """A new etcd on free ports, ready to use; raises `EtcdMissingError` or `EtcdFailedError`.

    Another program may take a port between its choice and its use, so a failed start is repeated.
    """
    program = find_etcd()
    attempt = 1
    while True:
        members = plan_members(
            directory / f"start-{attempt}",
            free_ports(count),
            heartbeat_ms=heartbeat_ms,
            election_ms=election_ms,
            before=before,
        )
        cluster = EtcdCluster([EtcdProcess(member, program) for member in members])
        try:
            cluster.start()
            await cluster.ready()
        except EtcdFailedError as error:
            cluster.stop()
            if attempt == STARTS_TRIED or "address already in use" not in str(error):
                raise
            attempt += 1
        except BaseException:
            cluster.stop()
            raise
        else:
            return cluster


def free_ports(count: int, host: str = "127.0.0.1") -> list[tuple[int, int]]:
    """Pairs of unused ports."""
    with ExitStack() as sockets:
        found = []
        for _ in range(2 * count):
            one = sockets.enter_context(socket.socket())
            one.bind((host, 0))
            found.append(int(one.getsockname()[1]))
    return list(zip(found[::2], found[1::2], strict=True))
