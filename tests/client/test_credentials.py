"""Which key a client shows, and that nothing it says repeats a secret."""

from __future__ import annotations

import pytest

import penstock
from penstock.client.connection.address import Address, parse_address, parse_url, without_secret
from penstock.client.connection.credentials import chosen_credentials
from penstock.model.errors import PenstockError
from penstock.wire.credentials import Credentials

SECRET = "wJalr+XUtn/FEMI"
ENCODED = "wJalr+XUtn%2FFEMI"


def test_a_url_may_carry_a_key_and_its_secret() -> None:
    assert parse_url(f"penstock://KEY:{ENCODED}@host:1") == (Address("host", 1), Credentials("KEY", SECRET))
    assert parse_url("penstock://host") == (Address("host", 9326), None)
    assert parse_address(f"penstock://KEY:{ENCODED}@[::1]:2") == Address("::1", 2)


@pytest.mark.parametrize(
    "url",
    [
        f"penstock://KEY:{SECRET}@host",
        f"penstock://KEY:{ENCODED}@host:notaport",
        f"penstock://KEY:{ENCODED}@host/queue",
        f"penstock://KEY:{ENCODED}@",
        f"http://KEY:{ENCODED}@host",
        f"penstock://:{ENCODED}@host",
        f"KEY:{ENCODED}@host",
    ],
)
def test_a_bad_url_is_refused_without_repeating_its_secret(url: str) -> None:
    with pytest.raises(PenstockError, match="not the address of a server") as caught:
        penstock.connect(url)
    for part in ("wJalr", "XUtn", "FEMI"):
        assert part not in str(caught.value)


def test_what_is_shown_of_a_url_has_no_secret() -> None:
    assert without_secret(f"penstock://KEY:{ENCODED}@host:1") == "penstock://host:1"
    assert without_secret("penstock://host:1") == "penstock://host:1"
    assert without_secret("KEY:a@b@host") == "host"


def test_arguments_come_before_the_url_and_the_url_before_the_environment() -> None:
    penstocks = {"PENSTOCK_ACCESS_KEY": "P", "PENSTOCK_SECRET_KEY": "p"}
    amazons = {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "a"}
    in_url = Credentials("U", "u")
    assert chosen_credentials("K", "k", in_url, penstocks) == Credentials("K", "k")
    assert chosen_credentials(None, None, in_url, penstocks) == in_url
    assert chosen_credentials(None, None, None, amazons | penstocks) == Credentials("P", "p")
    assert chosen_credentials(None, None, None, amazons) == Credentials("A", "a")
    assert chosen_credentials(None, None, None, {"AWS_ACCESS_KEY_ID": "A"}) is None
    assert chosen_credentials(None, None, None, {}) is None


def test_half_of_a_pair_is_refused() -> None:
    with pytest.raises(PenstockError, match="together"):
        penstock.connect(access_key="KEY")
    with pytest.raises(PenstockError, match="together") as caught:
        penstock.connect(secret_key=SECRET)
    assert SECRET not in str(caught.value)
    with pytest.raises(PenstockError, match="only one is set"):
        chosen_credentials(None, None, None, {"PENSTOCK_SECRET_KEY": SECRET})
