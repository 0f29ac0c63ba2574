"""Receipt tokens: only what this server sealed opens."""

from __future__ import annotations

from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.model.errors import ErrorCode, PenstockError
from penstock.queue.decisions.receipts import TOKEN_BYTES, ReceiptSeal

SEAL = ReceiptSeal(b"a secret of thirty-two bytes, say")
identities = some.integers(0, 2**64 - 1)


def refused(token: bytes, seal: ReceiptSeal = SEAL) -> None:
    with pytest.raises(PenstockError) as caught:
        seal.open(token)
    assert caught.value.code is ErrorCode.BAD_RECEIPT


@given(identities, identities)
def test_a_token_opens_to_what_it_was_made_of(partition_id: int, lease: int) -> None:
    token = SEAL.token(partition_id, lease)
    assert len(token) == TOKEN_BYTES
    assert SEAL.open(token) == (partition_id, lease)


def test_tokens_are_what_servers_of_every_version_make_of_the_secret() -> None:
    identity = (7).to_bytes(8, "little") + (9).to_bytes(8, "little")
    seal = blake2b(identity, key=b"a secret of thirty-two bytes, say", digest_size=16).digest()
    assert SEAL.token(7, 9) == identity + seal


@given(identities, identities, some.integers(0, TOKEN_BYTES * 8 - 1))
def test_a_token_with_any_bit_changed_is_refused(partition_id: int, lease: int, bit: int) -> None:
    token = bytearray(SEAL.token(partition_id, lease))
    token[bit // 8] ^= 1 << bit % 8
    refused(bytes(token))


def test_a_token_of_another_length_is_refused() -> None:
    token = SEAL.token(1, 2)
    for length in range(TOKEN_BYTES):
        refused(token[:length])
    refused(token + b"\0")
    refused(b"")


def test_a_token_of_another_server_is_refused() -> None:
    refused(ReceiptSeal(b"another secret").token(1, 2))


def test_the_seal_of_one_lease_does_not_open_another() -> None:
    one, other = SEAL.token(1, 2), SEAL.token(1, 3)
    refused(one[:16] + other[16:])


@given(some.binary(max_size=64))
def test_garbage_is_refused(token: bytes) -> None:
    refused(token)
