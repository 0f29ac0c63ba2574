"""The rule while there are no users: only programs of this machine are served, under a name of this machine.

Then any credentials are accepted, so two kinds of strangers must be kept out. A web page can make the browser of its
reader send requests to loopback, and may let its own name lead there (DNS rebinding): such requests name a host, or come
from a page, that is not this machine's. And a proxy on this machine forwards requests of others: its headers name their
origin.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from penstock.sqs.signing.authorization import ALGORITHM
from penstock.wire.credentials import is_this_machine

CLIENT_NAMES = ("x-forwarded-for", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip")
"""Headers in which proxies and tunnels name the client of a forwarded request."""
FORWARDED = "forwarded"
_FORWARDING = frozenset((FORWARDED, *CLIENT_NAMES))
BROWSER = "Mozilla/"
"""The beginning of every browser's `User-Agent`, and of that of some programs (Celery's transport)."""
MAKE_A_USER = "Make a user with `penstock user create NAME --root`, and sign requests with its key."
_LOCAL = r"(?:(?:[a-z0-9_-]+\.)*localhost|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]{1,5})?"
_LOCAL_HOST = re.compile(_LOCAL, re.IGNORECASE)
_LOCAL_ORIGIN = re.compile(f"https?://{_LOCAL}", re.IGNORECASE)
_LOCAL_PAGE = re.compile(f"https?://{_LOCAL}(?:[/?#].*)?", re.IGNORECASE)
_REMEMBERED = 1024

_FOREIGN_HOST = (
    "There are no users yet, so only requests are served that call this machine by a local name (localhost, 127.0.0.1 or "
    f"[::1] as the host of the endpoint): a web page could have any other name lead here. {MAKE_A_USER}"
)
_FOREIGN_PAGE = (
    "There are no users yet, so web pages of other sites, and links that a browser opens, are refused: they could ask for anything. "
    f"{MAKE_A_USER}"
)
_FOREIGN_CLIENT = (
    f"There are no users yet, so only clients on this machine are served, also behind a proxy. {MAKE_A_USER}"
)


def why_not_served(headers: Mapping[str, str], address: str, *, may_be_typed: bool = False) -> str | None:
    """The error for a client that must not be served while there are no users; None for a client of this machine.

    `address` is the client's, as trusted proxies name it. `may_be_typed`: also accept requests that were typed into a
    browser or opened from a mail; only for requests that change nothing.
    """
    if not is_local_host(headers.get("host", "")):
        return _FOREIGN_HOST
    if _is_foreign_page(headers, may_be_typed):
        return _FOREIGN_PAGE
    if not is_loopback(address):
        return _FOREIGN_CLIENT
    # A tunnel or proxy that is not configured as trusted sends such a header too; a client of this machine has no reason to.
    if not _FORWARDING.isdisjoint(headers) and (
        FORWARDED in headers
        or not all(_all_loopback(headers[name]) for name in CLIENT_NAMES if name in headers)
    ):
        return _FOREIGN_CLIENT
    return None


@lru_cache(maxsize=_REMEMBERED)
def is_local_host(host: str) -> bool:
    """Whether a Host header names this machine by a name that cannot lead elsewhere."""
    return _LOCAL_HOST.fullmatch(host) is not None


@lru_cache(maxsize=_REMEMBERED)
def is_loopback(address: str) -> bool:
    """Whether an address of a client is one of this machine's loopback."""
    return is_this_machine(address)


def _all_loopback(forwarded_for: str) -> bool:
    return all(is_loopback(word.strip()) for word in forwarded_for.split(","))


def _is_foreign_page(headers: Mapping[str, str], may_be_typed: bool) -> bool:
    """A browser names the page that makes the request; SDKs and tools do not.

    Old browsers only name the page with the link, and not even that if the page forbids it: then the request may also have
    been typed. A link in a mail has no page: the browser sends `none`, as for a typed address.
    """
    referer = headers.get("referer")
    if referer is not None and _LOCAL_PAGE.fullmatch(referer) is None:
        return True
    origin = headers.get("origin")
    if origin is not None:
        return _LOCAL_ORIGIN.fullmatch(origin) is None
    site = headers.get("sec-fetch-site")
    # A page cannot make a browser sign in a header without asking first; programs do. A name and a password in a link it can.
    if site is None and referer is None and not headers.get("authorization", "").startswith(ALGORITHM):
        site = "none" if headers.get("user-agent", "").startswith(BROWSER) else None
    return site is not None and site != "same-origin" and not (may_be_typed and site == "none")
