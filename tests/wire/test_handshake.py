"""The handshake lets those in who know the secret, and nobody who heard others say that they do."""

from __future__ import annotations

import msgspec
import pytest

from penstock.wire.frames import PREFIX_BYTES
from penstock.wire.handshake import (
    HANDSHAKE_FRAME_BYTES,
    NONCE_BYTES,
    ClientHandshake,
    HandshakeError,
    Proof,
    ServerHandshake,
)

SECRET = b"the secret of the cluster"
ONE, OTHER = b"1" * NONCE_BYTES, b"2" * NONCE_BYTES


def test_two_that_know_the_secret_accept_each_other() -> None:
    server, client = ServerHandshake(SECRET, "metadata", ONE), ClientHandshake(SECRET, "metadata", OTHER)
    challenge = server.challenge()
    proof = client.prove(challenge)
    accepted = server.accept(proof)
    client.finish(accepted)
    assert max(len(challenge), len(proof), len(accepted)) < HANDSHAKE_FRAME_BYTES / 2
    assert SECRET not in challenge + proof + accepted


@pytest.mark.parametrize(
    ("secret", "service"), [(b"another secret of a cluster", "metadata"), (SECRET, "peers")]
)
def test_another_secret_or_service_is_refused_by_both_sides(secret: bytes, service: str) -> None:
    server, client = ServerHandshake(SECRET, "metadata", ONE), ClientHandshake(secret, service, OTHER)
    with pytest.raises(HandshakeError, match="does not know"):
        server.accept(client.prove(server.challenge()))
    impostor = ServerHandshake(secret, service, ONE)
    friend = ClientHandshake(SECRET, "metadata", OTHER)
    friend.prove(impostor.challenge())
    with pytest.raises(HandshakeError, match="does not know"):
        friend.finish(impostor.accept(client.prove(impostor.challenge())))


def test_a_proof_that_was_heard_is_no_use_again() -> None:
    first = ServerHandshake(SECRET, "metadata", ONE)
    client = ClientHandshake(SECRET, "metadata", OTHER)
    proof = client.prove(first.challenge())
    accepted = first.accept(proof)
    with pytest.raises(HandshakeError):
        ServerHandshake(SECRET, "metadata", OTHER).accept(proof)
    later = ClientHandshake(SECRET, "metadata", ONE)
    later.prove(first.challenge())
    with pytest.raises(HandshakeError):
        later.finish(accepted)


def test_a_proof_for_another_address_is_refused_and_cannot_be_altered() -> None:
    server = ServerHandshake(SECRET, "node", ONE, "10.0.0.2:9326")
    for dialled in ("10.0.0.9:9326", ""):
        client = ClientHandshake(SECRET, "node", OTHER, dialled)
        proof = client.prove(server.challenge())
        with pytest.raises(HandshakeError, match="belonged to another process"):
            server.accept(proof)
        nonce, mark = msgspec.msgpack.decode(proof)[1:3]
        with pytest.raises(HandshakeError, match="does not know"):
            server.accept(msgspec.msgpack.encode(Proof(nonce, mark, "10.0.0.2:9326")))
    client = ClientHandshake(SECRET, "node", OTHER, "10.0.0.2:9326")
    client.finish(server.accept(client.prove(server.challenge())))
    longest = ClientHandshake(SECRET, "node", OTHER, f"{'h' * 253}:65535").prove(server.challenge())
    assert len(longest) < HANDSHAKE_FRAME_BYTES - PREFIX_BYTES


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\n", b"\x93\xa5proof\xc4\x01a\xc4\x01b", b"\xc1"])
def test_anything_else_is_refused(said: bytes) -> None:
    with pytest.raises(HandshakeError):
        ServerHandshake(SECRET, "metadata", ONE).accept(said)
    client = ClientHandshake(SECRET, "metadata", OTHER)
    with pytest.raises(HandshakeError):
        client.prove(said)
    with pytest.raises(HandshakeError):
        client.finish(said)
