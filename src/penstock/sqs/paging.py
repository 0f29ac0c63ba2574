"""Pages of lists of queues, and the opaque tokens that continue them.

A token is the last name of its page, so it stays valid while queues are created and deleted between two pages.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from penstock.sqs.compatibility import LIST_RESULTS
from penstock.sqs.refusals import invalid_parameter

TOKEN_CHARACTERS = 1024


class Page(NamedTuple):
    """Some names in order, and how to get the next ones."""

    names: list[str]
    next_token: str | None


def page_of(names: Sequence[str], max_results: int | None, token: str | None) -> Page:
    """One page of sorted names; without `max_results` it is the only one and has no token."""
    start = bisect_right(names, decode_token(token)) if token else 0
    end = start + (max_results or LIST_RESULTS)
    chosen = list(names[start:end])
    more = max_results is not None and end < len(names)
    return Page(chosen, encode_token(chosen[-1]) if more else None)


def encode_token(last_name: str) -> str:
    """The token of the page after a name."""
    return base64.urlsafe_b64encode(last_name.encode()).decode()


def decode_token(token: str) -> str:
    """The name a page starts after."""
    if len(token) > TOKEN_CHARACTERS:
        raise _bad_token()
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise _bad_token() from None


def _bad_token() -> Exception:
    return invalid_parameter("Invalid or expired next token.")
