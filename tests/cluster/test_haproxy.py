"""HAProxy's configuration: HAProxy itself must take it, and nothing in a plan may write lines of its own."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.cluster.local.haproxy import (
    BalancedFrontEnd,
    BalancerPlan,
    BalancerPlanError,
    haproxy_configuration,
)

PROGRAM = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/local/sbin:/usr/sbin:/sbin")
ONE = BalancedFrontEnd(name="frontend-1", sqs="127.0.0.1:19340", native="127.0.0.1:19341")
TWO = BalancedFrontEnd(name="frontend-2", sqs="[::1]:19350", native="[::1]:19351")
PLAN = BalancerPlan(
    sqs_listen="127.0.0.1:19324",
    native_listen="127.0.0.1:19326",
    page_listen="127.0.0.1:19325",
    front_ends=(ONE, TWO),
)


@pytest.mark.skipif(PROGRAM is None, reason="there is no haproxy here; scripts/system-packages installs it")
@pytest.mark.parametrize(
    "plan",
    [
        PLAN,
        replace(PLAN, native_listen=None),
        replace(PLAN, page_listen=None, front_ends=(TWO,)),
        replace(PLAN, front_ends=(replace(ONE, native=None), TWO)),
        replace(PLAN, sqs_listen="*:19324"),
    ],
)
def test_haproxy_takes_it_without_a_warning(plan: BalancerPlan, tmp_path: Path) -> None:
    assert PROGRAM is not None
    file = tmp_path / "haproxy.cfg"
    file.write_text(haproxy_configuration(plan))
    done = subprocess.run([PROGRAM, "-c", "-f", str(file)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr


def test_every_front_end_is_asked_for_its_health_where_it_speaks_sqs() -> None:
    lines = [line.strip() for line in haproxy_configuration(PLAN).splitlines()]
    assert lines.count("option httpchk GET /health") == 2
    assert "server frontend-2 [::1]:19350" in lines
    assert "server frontend-2 [::1]:19351 addr [::1] port 19350" in lines


def test_a_front_end_without_native_address_serves_sqs_only() -> None:
    text = haproxy_configuration(replace(PLAN, front_ends=(replace(ONE, native=None), TWO)))
    assert text.count("server frontend-1 ") == 1
    assert text.count("server frontend-2 ") == 2


def test_tls_ends_at_the_balancer_where_it_has_a_certificate() -> None:
    text = haproxy_configuration(replace(PLAN, certificate="/etc/penstock/queues.pem"))
    assert "bind 127.0.0.1:19324 ssl crt /etc/penstock/queues.pem" in text


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (replace(PLAN, front_ends=()), "at least one front end"),
        (replace(PLAN, front_ends=(ONE, ONE)), "the same name"),
        (replace(PLAN, front_ends=(replace(ONE, name="a b"),)), "cannot be the name"),
        (replace(PLAN, front_ends=(replace(ONE, sqs="host:1\n    stats admin"),)), "is not HOST:PORT"),
        (replace(PLAN, sqs_listen="127.0.0.1"), "is not HOST:PORT"),
        (replace(PLAN, front_ends=(replace(ONE, native=None),)), "native address"),
        (replace(PLAN, certificate="a b.pem"), "special meaning for HAProxy"),
    ],
)
def test_what_cannot_be_is_said(plan: BalancerPlan, sentence: str) -> None:
    with pytest.raises(BalancerPlanError, match=sentence):
        haproxy_configuration(plan)
