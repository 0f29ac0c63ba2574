"""The configuration of HAProxy in front of a cluster's front ends: one SQS endpoint and one native endpoint.

Only text is made here; who writes the file and tells HAProxy of it is `runtime/local_cluster/balancer.py`, or the operator
of several machines.
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
    "# A web page may have its own name lead here; its browser says that name.",
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
    """What the balancer is to do."""

    sqs_listen: str
    native_listen: str | None = None
    page_listen: str | None = None
    """Where a person, or a program that adds `/;csv`, sees what it thinks of the front ends."""
    front_ends: Sequence[BalancedFrontEnd]
    certificate: str | None = None
    """A PEM file with certificate and key: SQS clients then speak TLS with the balancer."""
    max_connections: int = 10_000
    passes_clients_on: bool = False
    """Whether front ends are told whose native connections they get: they must trust the balancer (`native.trusted_proxies`)."""
    drain_seconds: int = 60
    """After a reload the connections of before may go on for so long."""


class BalancerPlanError(ValueError):
    """The plan cannot be written as a configuration; the message says what is wrong."""


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
        "# A front end that just died is not yet known to be dead: another one is tried.",
        "retries 3",
        "option redispatch 1",
        "# Whoever waits for a front end that hangs is let go, and finds another one.",
        f"default-server check on-marked-down shutdown-sessions {_checks()}",
    )
    secure = f" ssl crt {plan.certificate}" if plan.certificate is not None else ""
    yield from _section("frontend sqs", "mode http", f"bind {plan.sqs_listen}{secure}", "default_backend sqs")
    yield from _section(
        "backend sqs",
        "mode http",
        "balance leastconn",
        "# Nothing that may have been done is done again: only where no connection came about another one is tried.",
        "retry-on conn-failure",
        "# Front ends believe this of the addresses in their sqs.trusted_proxies; what a client says of itself is lost.",
        "# On this machine it may be a tunnel or proxy that says whose request it hands on: that is kept.",
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
            ("# Front ends believe who the client is of the addresses in their native.trusted_proxies.",)
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
    """What stands in a configuration is read by a program: nothing may end a line or begin a word."""
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
