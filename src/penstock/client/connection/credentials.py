"""The access key of a client: from its arguments, its URL or the environment, in this order."""

from __future__ import annotations

import os
from collections.abc import Mapping

from penstock.client.connection.failure import refused
from penstock.wire.credentials import Credentials

VARIABLES = (
    ("PENSTOCK_ACCESS_KEY", "PENSTOCK_SECRET_KEY"),
    ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
)
"""In this order; the second pair is what SDKs of SQS read."""
_KEY_CHARACTERS = 128


def chosen_credentials(
    access_key: str | None,
    secret_key: str | None,
    in_url: Credentials | None,
    environment: Mapping[str, str] | None = None,
) -> Credentials | None:
    """None: there is no key. Raises on half of a pair; never repeats a secret."""
    if access_key is not None or secret_key is not None:
        if not access_key or not secret_key:
            raise refused("give access_key and secret_key together, or neither")
        return _checked(Credentials(access_key, secret_key))
    if in_url is not None:
        return _checked(in_url)
    environment = os.environ if environment is None else environment
    for key_name, secret_name in VARIABLES:
        key, secret = environment.get(key_name, ""), environment.get(secret_name, "")
        if key and secret:
            return _checked(Credentials(key, secret))
        if key_name.startswith("PENSTOCK") and (key or secret):
            raise refused(f"of {key_name} and {secret_name} only one is set: set both, or neither")
    return None


def _checked(credentials: Credentials) -> Credentials:
    if len(credentials.access_key) > _KEY_CHARACTERS or not credentials.access_key.isprintable():
        raise refused(f"an access key is the id of a key, of at most {_KEY_CHARACTERS} characters")
    return credentials
