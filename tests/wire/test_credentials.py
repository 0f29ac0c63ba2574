"""Proofs of access keys: each good for one side, one key and one pair of nonces."""

from __future__ import annotations

import msgspec
import pytest

from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.credentials import (
    Credentials,
    Prove,
    channel_of,
    check_server,
    client_proof,
    encode_proof,
    read_greeting,
    server_proof,
)
from penstock.wire.messages import Hello, Ping, encode_message

OURS, THEIRS = b"c" * 32, b"s" * 32


def test_a_proof_is_about_the_key_both_nonces_and_the_side() -> None:
    proofs = {
        client_proof("secret", "KEY", THEIRS, OURS),
        server_proof("secret", "KEY", THEIRS, OURS),
        client_proof("other", "KEY", THEIRS, OURS),
        client_proof("secret", "KEX", THEIRS, OURS),
        client_proof("secret", "KEY", OURS, THEIRS),
        client_proof("secret", "KEY", THEIRS, b"d" * 32),
        client_proof("secret", "KEY", THEIRS, OURS, channel_of(b"a certificate")),
        client_proof("secret", "KEY", THEIRS, OURS, channel_of(b"")),
    }
    assert len(proofs) == 8
    assert not any(b"secret" in proof for proof in proofs)


def test_a_server_that_does_not_know_the_secret_is_noticed() -> None:
    credentials = Credentials("KEY", "secret")
    check_server(credentials, THEIRS, OURS, server_proof("secret", "KEY", THEIRS, OURS), "there", "10.0.0.1")
    for wrong in (b"", client_proof("secret", "KEY", THEIRS, OURS), server_proof("x", "KEY", THEIRS, OURS)):
        with pytest.raises(PenstockError, match="does not know the secret") as caught:
            check_server(credentials, THEIRS, OURS, wrong, "there", "127.0.0.1")
        assert caught.value.code is ErrorCode.UNAUTHENTICATED
        assert "'secret'" not in str(caught.value)


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"])
def test_a_server_of_this_machine_may_ask_for_nothing(peer: str) -> None:
    check_server(Credentials("KEY", "secret"), None, OURS, b"", "there", peer)


@pytest.mark.parametrize(
    "peer", ["10.0.0.1", "::ffff:10.0.0.1", "fe80::1%eth0", "192.0.2.7", "localhost", ""]
)
def test_a_server_elsewhere_that_shows_nothing_is_refused(peer: str) -> None:
    with pytest.raises(PenstockError, match="there accepts this client without proving") as caught:
        check_server(Credentials("KEY", "secret"), None, OURS, b"", "there", peer)
    assert caught.value.code is ErrorCode.UNAUTHENTICATED
    assert "'secret'" not in str(caught.value)


def test_credentials_do_not_show_their_secret() -> None:
    assert "s3cret" not in repr(Credentials("KEY", "s3cret"))
    assert "s3cret" not in f"{[Credentials('KEY', 's3cret')]}"


def test_only_greetings_are_read_before_the_welcome() -> None:
    assert read_greeting(encode_proof(b"p")) == Prove(b"p")
    assert read_greeting(encode_message(Hello([1], "me"))) == Hello([1], "me")
    assert read_greeting(encode_message(Ping())) is None
    assert read_greeting(b"\xff\xff") is None


@pytest.mark.parametrize("levels", [9, 100, 975, 10_000])
def test_a_greeting_that_nests_deeply_is_refused_where_it_is_read(levels: int) -> None:
    """Whatever the decoder would take: how deep that goes depends on how much of the stack is used already."""
    fields = msgspec.msgpack.decode(encode_message(Hello([1], "me")))
    plain = b"".join(map(msgspec.msgpack.encode, fields))
    head = bytes([0x90 + len(fields) + 1]) + plain + b"\x91" * levels + b"\xc0"
    with pytest.raises(PenstockError, match="nests at most 8 levels deep"):
        read_greeting(head)


def test_a_greeting_that_is_larger_than_any_is_refused() -> None:
    with pytest.raises(PenstockError, match="at most 16384 bytes"):
        read_greeting(encode_message(Hello([1], "x" * 20_000)))


def test_a_greeting_of_a_later_version_is_read() -> None:
    fields = msgspec.msgpack.decode(encode_message(Hello([1], "me")))
    head = msgspec.msgpack.encode([*fields, {"new": [[1], {"more": [2]}]}])
    assert read_greeting(head) == Hello([1], "me")
