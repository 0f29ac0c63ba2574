"""With certificates the port for readers is who the cluster's configuration says: a name, the host, or anybody of the authority."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.client.log.node_reads import connect_to_node
from penstock.runtime.local_cluster.certificates import CertificateFiles, ThrowAwayAuthority
from penstock.wire.log_messages import LogAddress
from tests.runtime.cluster.readers.cluster import readable_cluster
from tests.runtime.cluster.readers.test_direct_reads import MESSAGES, SIZE, a_log, read
from tests.runtime.harness import async_test


def options(files: CertificateFiles, name: str | None) -> dict[str, Any]:
    return {
        "cluster_tls_certificate": str(files.certificate),
        "cluster_tls_key": str(files.key),
        "cluster_tls_ca": str(files.authority),
        "cluster_tls_name": name,
    }


async def dial(place: LogAddress) -> None:
    (await connect_to_node(place, 0, asyncio.get_running_loop(), lambda _: None)).close()


@async_test
async def test_readers_look_for_the_name_that_the_configuration_says(tmp_path: Path) -> None:
    for name, wanted in (("queues", "queues"), ("host", "127.0.0.1"), (None, "")):
        directory = tmp_path / str(name)
        directory.mkdir()
        files = ThrowAwayAuthority(directory / "tls").files("queues")
        async with readable_cluster(directory, **options(files, name)) as cluster:
            queue = await a_log(cluster, 1)
            place = await cluster.place(queue)
            assert place.certified_name == wanted
            assert len(await read(queue.log(), direct=True)) == MESSAGES
            assert queue.log().direct_bytes > SIZE
            for other in ("elsewhere", "127.0.0.2"):
                with pytest.raises(ssl.SSLCertVerificationError):
                    await dial(msgspec.structs.replace(place, certified_name=other))


@async_test
async def test_a_client_with_tls_reads_from_no_node_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Else the url would ask for TLS, and the messages and the ticket would pass the network as they are."""
    files = ThrowAwayAuthority(tmp_path / "tls").files("server")
    async with readable_cluster(tmp_path, shown=files) as cluster:
        queue = await a_log(cluster, 1)
        assert (await cluster.place(queue)).address
        assert len(await read(queue.log(), direct=True)) == MESSAGES
        assert queue.log().direct_bytes == 0
        assert "it does not use TLS, which this client requires" in caplog.text


@async_test
async def test_who_has_another_name_from_the_same_authority_is_shown_no_ticket(tmp_path: Path) -> None:
    authority = ThrowAwayAuthority(tmp_path / "tls")
    files, impostor = authority.files("queues"), authority.files("impostor")
    shown: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        shown.append(await reader.read(1_000))
        writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(impostor.certificate, impostor.key)
    server = await asyncio.start_server(listen, "127.0.0.1", 0, ssl=context)
    async with readable_cluster(tmp_path, **options(files, "queues")) as cluster:
        place = await cluster.place(await a_log(cluster, 1))
        port = server.sockets[0].getsockname()[1]
        elsewhere = msgspec.structs.replace(place, address=f"127.0.0.1:{port}")
        with pytest.raises(ssl.SSLCertVerificationError):
            await dial(elsewhere)
        assert not any(shown)
        with pytest.raises(
            ConnectionError
        ):  # where no name counts it takes the ticket, and does not know what it is
            await dial(msgspec.structs.replace(elsewhere, certified_name=""))
        assert any(shown)
    server.close()
    await server.wait_closed()
