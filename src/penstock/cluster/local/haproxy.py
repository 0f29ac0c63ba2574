"""The configuration of HAProxy in front of a cluster's front ends: one SQS endpoint and one native endpoint.

It only makes the text. `runtime/local_cluster/balancer.py`, or the operator of several machines, writes the file and
reloads HAProxy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

HEALTH_PATH = "/health"
CHECK_SECONDS = 1
"""How often a front end is asked how it is."""
FAILED_CHECKS = 2
"""So many in a row, and it gets nothing more and loses what it has; one answer brings it back."""
POLL_SECONDS = 65
"""How long an answer may take: a long poll may take 20 s, and a person's pause is no reason to cut a connection."""
HALF_CLOSED_SECONDS = 5
"""How long one side may say nothing after the other has closed. Without it a client that does not close its side keeps its place
for as long as a session may be silent."""
HEAD_SECONDS = 10
"""How long the headers of a request may take, as at the front ends."""
KEEP_ALIVE_SECONDS = 30
SESSION_HOURS = 24
"""How long a native connection may say nothing; clients ask of themselves whether the other end is there."""

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_LOCAL_ONLY = (
    "# A web page may let its own name lead here; its browser sends that name.",
    r"http-request deny unless { req.hdr(host) -m reg -i '^(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]{1,5})?$' }",
)
_NAME = re.compile(r"[A-Za-z0-9_.:-]+")
_PLACE = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.*-]*):[0-9]{1,5}")


@dataclass(frozen=True, kw_only=True)
class BalancedFrontEnd:
    """A front end as the balancer reaches it, each address as HOST:PORT."""

    name: str
    sqs: str
    """It answers to `/health` here too."""
    native: str | None = None


@dataclass(frozen=True, kw_only=True)
class BalancerPlan:
    """The options of the balancer."""

    sqs_listen: str
    native_listen: str | None = None
    page_listen: str | None = None
    """The address of HAProxy's statistics page; `/;csv` has the same for programs."""
    front_ends: Sequence[BalancedFrontEnd]
    certificate: str | None = None
    """A PEM file with certificate and key: SQS clients then use TLS with the balancer."""
    max_connections: int = 10_000
    passes_clients_on: bool = False
    """Whether the balancer sends client addresses to front ends; they must trust it (`native.trusted_proxies`)."""
    drain_seconds: int = 60
    """For how long earlier connections may continue after a reload."""


class BalancerPlanError(ValueError):
    """The plan cannot be written as a configuration; the message gives the reason."""


def haproxy_configuration(plan: BalancerPlan) -> str:
    """The file, for HAProxy 2.2 and later; raises `BalancerPlanError`."""
    _check(plan)
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: BalancerPlan) -> Iterator[str]:
    yield "# Made by Penstock; changes are lost when it is made again."
    yield from _section(
        "global",
        f"maxconn {plan.max_connections}",
        f"hard-stop-after {plan.drain_seconds}s",
    )
    yield from _section(
        "defaults",
        "timeout connect 2s",
        f"timeout client {POLL_SECONDS}s",
        f"timeout server {POLL_SECONDS}s",
        f"timeout check {CHECK_SECONDS}s",
        f"timeout client-fin {HALF_CLOSED_SECONDS}s",
        f"timeout server-fin {HALF_CLOSED_SECONDS}s",
        f"timeout http-request {HEAD_SECONDS}s",
        f"timeout http-keep-alive {KEEP_ALIVE_SECONDS}s",
        "timeout queue 5s",
        "# A front end that just died is not marked as down yet: try another one.",
        "retries 3",
        "option redispatch 1",
        "# Close the connections to a front end that hangs, so that clients find another one.",
        f"default-server check on-marked-down shutdown-sessions {_checks()}",
    )
    secure = f" ssl crt {plan.certificate}" if plan.certificate is not None else ""
    yield from _section("frontend sqs", "mode http", f"bind {plan.sqs_listen}{secure}", "default_backend sqs")
    yield from _section(
        "backend sqs",
        "mode http",
        "balance leastconn",
        "# Retry only if no connection was made: a request that may have been carried out must not be repeated.",
        "retry-on conn-failure",
        "# Front ends trust this header from the addresses in sqs.trusted_proxies; a client's own header is replaced.",
        "# A client on this machine may be a tunnel or proxy that names its own client: keep its header.",
        "http-request set-header X-Forwarded-For %[src] unless { src 127.0.0.1 ::1 }",
        "http-request add-header X-Forwarded-For %[src] if { src 127.0.0.1 ::1 }",
        "http-request set-header X-Forwarded-Proto https if { ssl_fc }",
        "http-request set-header X-Forwarded-Proto http if !{ ssl_fc }",
        f"option httpchk GET {HEALTH_PATH}",
        *(f"server {one.name} {one.sqs}" for one in plan.front_ends),
    )
    if plan.native_listen is not None:
        yield from _native(plan.native_listen, plan.front_ends, passes_clients_on=plan.passes_clients_on)
    if plan.page_listen is not None:
        yield from _section(
            "frontend page",
            "mode http",
            f"bind {plan.page_listen}",
            *(_LOCAL_ONLY if _host(plan.page_listen) in _LOOPBACK else ()),
            "stats enable",
            "stats uri /",
            "stats refresh 2s",
        )


def _native(listen: str, front_ends: Iterable[BalancedFrontEnd], *, passes_clients_on: bool) -> Iterator[str]:
    session = f"{SESSION_HOURS}h"
    says = " send-proxy-v2" if passes_clients_on else ""
    yield from _section(
        "frontend native", "mode tcp", f"bind {listen}", f"timeout client {session}", "default_backend native"
    )
    yield from _section(
        "backend native",
        "mode tcp",
        "balance leastconn",
        f"timeout server {session}",
        f"option httpchk GET {HEALTH_PATH}",
        *(
            ("# Front ends trust the client's address from the addresses in native.trusted_proxies.",)
            if passes_clients_on
            else ()
        ),
        *(
            f"server {one.name} {one.native}{says} addr {_host(one.sqs)} port {_port(one.sqs)}"
            for one in front_ends
            if one.native is not None
        ),
    )


def _checks() -> str:
    return f"inter {CHECK_SECONDS}s fastinter 200ms downinter 500ms fall {FAILED_CHECKS} rise 1"


def _section(title: str, *lines: str) -> Iterator[str]:
    yield ""
    yield title
    for line in lines:
        yield f"    {line}"


def _check(plan: BalancerPlan) -> None:
    """Checks a value for the configuration: it must not end a line or begin a word."""
    if not plan.front_ends:
        raise BalancerPlanError("a balancer needs at least one front end")
    names = [one.name for one in plan.front_ends]
    for name in names:
        if not _NAME.fullmatch(name):
            raise BalancerPlanError(
                f"{name!r} cannot be the name of a front end: use letters, digits, - and _"
            )
    if len(set(names)) < len(names):
        raise BalancerPlanError("two front ends have the same name")
    own = [plan.sqs_listen, plan.native_listen, plan.page_listen]
    theirs = [place for one in plan.front_ends for place in (one.sqs, one.native)]
    for place in (*own, *theirs):
        if place is not None and not _PLACE.fullmatch(place):
            raise BalancerPlanError(f"{place!r} is not HOST:PORT")
    if plan.native_listen is not None and not any(one.native for one in plan.front_ends):
        raise BalancerPlanError("no front end has a native address for the native endpoint")
    if plan.certificate is not None and re.search(r"[\s\"'\\#]", plan.certificate):
        raise BalancerPlanError(f"{plan.certificate!r} has characters with a special meaning for HAProxy")


def _host(place: str) -> str:
    return place.rpartition(":")[0]


def _port(place: str) -> str:
    return place.rpartition(":")[2]
