"""A network of namespaces whose cables can be cut: one machine for each process, a router between them.

The router is the namespace of the run itself, where the clients are. What is cut is lost without a word,
as on a real network: nobody is told that a host cannot be reached.

Machines have addresses that are loopback's by their number, and so has the router, because Penstock listens on no others, and serves
no others, while there are no users.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, get_args

from tests.chaos.isolation import NAMES_OF_NETWORKS, run

Shape = Literal["entirely", "deaf", "mute", "from its partners"]
"""Cut off entirely; hears nobody; is heard by nobody; cannot speak with those it works with but with everybody else."""
SHAPES: tuple[Shape, ...] = get_args(Shape)

_NET = "127.77.0"
_ROUTER = "127.77.0.254"
_LOOPBACK = ("addr del 127.0.0.1/8 dev lo", "addr add 127.0.0.1/32 dev lo")
"""Loopback is one address, so that the rest of its net can be elsewhere."""
_FIRST_CUT = 100
_LOCAL = 1_000
"""Rules are asked in this order: what is cut, then what is for the router itself, then the routes."""


class Network:
    """Machines by name; made at once, and gone with the run."""

    def __init__(self, names: Sequence[str]) -> None:
        self._numbers = {name: number for number, name in enumerate(names, 1)}
        self._cuts: list[int] = []

    def make(self) -> None:
        """Namespaces, cables and routes."""
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        Path("/proc/sys/net/ipv4/conf/all/route_localnet").write_text("1")
        router = [*_LOOPBACK, f"rule add pref {_LOCAL} lookup local", "rule del pref 0"]
        for name, number in self._numbers.items():
            run("ip", "netns", "add", name)
            run(*self.before(name), "sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet")
            router += [
                f"link add cable{number} type veth peer name cable netns {name}",
                f"addr add {_ROUTER}/32 dev cable{number} scope global",
                f"link set cable{number} up",
                f"route add {self.host(name)}/32 dev cable{number}",
            ]
        _batch(router)
        for name in self._numbers:
            _batch(
                [
                    "link set lo up",
                    *_LOOPBACK,
                    f"addr add {self.host(name)}/32 dev cable scope global",
                    "link set cable up",
                    f"route add {_ROUTER}/32 dev cable",
                    f"route add default via {_ROUTER} src {self.host(name)}",
                ],
                "-netns",
                name,
            )

    def host(self, name: str) -> str:
        """The address of a machine."""
        return f"{_NET}.{self._numbers[name]}"

    def before(self, name: str) -> tuple[str, ...]:
        """What runs the rest of its command line on a machine."""
        return ("nsenter", f"--net={NAMES_OF_NETWORKS / name}", "--")

    def cut(self, name: str, shape: Shape, partners: Sequence[str]) -> None:
        """Cuts a machine off, until `mend`."""
        cable, host = f"cable{self._numbers[name]}", self.host(name)
        match shape:
            case "entirely":
                lost = [f"iif {cable}", f"to {host}"]
            case "deaf":
                lost = [f"to {host}"]
            case "mute":
                lost = [f"iif {cable}"]
            case "from its partners":
                lost = []
                for one in partners:
                    lost.append(f"iif {cable} to {self.host(one)}")
                    lost.append(f"iif cable{self._numbers[one]} to {host}")
        first = max(self._cuts, default=_FIRST_CUT) + 1
        _batch([f"rule add pref {first + index} {rule} blackhole" for index, rule in enumerate(lost)])
        self._cuts += range(first, first + len(lost))

    def mend(self) -> None:
        """Everybody reaches everybody again."""
        while self._cuts:
            with suppress(OSError):
                run("ip", "rule", "del", "pref", str(self._cuts.pop()))


def _batch(lines: Sequence[str], *options: str) -> None:
    run("ip", *options, "-batch", "-", text="\n".join(lines) + "\n")
