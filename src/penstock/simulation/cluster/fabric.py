"""The network of a cluster: one stream for each pair of machines, one connection for clients to each, and how they are cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from penstock.simulation.cluster.machine import ClusterMachine
from penstock.simulation.cluster.metadata import SimulatedMetadata
from penstock.simulation.cluster.wires import CutNetwork
from penstock.simulation.network import Link
from penstock.simulation.schedule import Schedule

SHAPES = ("one", "halves", "ring", "one-way", "flapping", "from-store", "from-clients")
_DIAL_MS = (20, 200)


class _Listener:
    """Where a machine accepts the stream of another one."""

    def __init__(self, machine: ClusterMachine, caller: str) -> None:
        self._machine = machine
        self._caller = caller

    def accepts(self) -> bool:
        return self._machine.is_up

    def opened(self, link: Link) -> None:
        self._machine.peer_opened(self._caller, link.to_client, link)

    def arrived(self, link: Link, data: bytes) -> None:
        self._machine.peer_arrived(self._caller, data, link)

    def lost(self, link: Link) -> None:
        self._machine.peer_lost(self._caller, link)


class Fabric:
    """Which machines can reach each other."""

    def __init__(
        self,
        machines: Sequence[ClusterMachine],
        metadata: SimulatedMetadata,
        schedule: Schedule,
        random: Random,
    ) -> None:
        self._names = [machine.name for machine in machines]
        self._machines = {machine.name: machine for machine in machines}
        self._metadata = metadata
        self._schedule = schedule
        self._random = random
        self.clients = {machine.name: CutNetwork(schedule, random, machine) for machine in machines}
        self._pairs: dict[tuple[str, str], CutNetwork] = {}
        """(the connecting side, the listening side)."""
        self._connected: set[tuple[str, str]] = set()
        self.client_names: list[str] = []
        self.defects: list[tuple[int, str]] = []
        """(when, what) of front ends that failed by themselves."""
        self.calm = False
        """Once this is so nothing is cut any more."""
        for one in self._names:
            for other in self._names:
                if one < other:
                    listener = _Listener(self._machines[other], one)
                    self._pairs[one, other] = CutNetwork(schedule, random, listener)
                    self._dial((one, other))

    def slow(self, latency_ms: tuple[int, int]) -> None:
        """How long everything is on its way."""
        for network in (*self._pairs.values(), *self.clients.values()):
            network.latency_ms = latency_ms

    def lose(self, share: float) -> None:
        """So much of what is sent is lost on its way, and comes late."""
        for network in (*self._pairs.values(), *self.clients.values()):
            network.loss = share

    def stall(self, duration_ms: int) -> bool:
        """Delays everything sent over one of the connections, of nodes or clients, for so long."""
        links = [
            network.open_links[number]
            for network in (*self._pairs.values(), *self.clients.values())
            for number in sorted(network.open_links)
        ]
        if links:
            self._random.choice(links).stall(duration_ms)
        return bool(links)

    def _dial(self, pair: tuple[str, str]) -> None:
        """Connects a pair whenever it is not connected."""
        one, other = pair
        machine, network = self._machines[one], self._pairs[pair]
        if machine.is_up and pair not in self._connected:
            link: Link | None = None

            def arrived(data: bytes) -> None:
                if link is not None:
                    machine.peer_arrived(other, data, link)

            def lost() -> None:
                self._connected.discard(pair)
                if link is not None:
                    machine.peer_lost(other, link)

            link = network.connect(arrived, lost)
            if link is not None:
                self._connected.add(pair)
                machine.peer_opened(other, link.to_server, link)
        self._schedule.after(self._random.randint(*_DIAL_MS), lambda: self._dial(pair))

    # -- cuts ------------------------------------------------------------------------------------------------

    def cut(self, shape: str) -> str:
        """Cuts in one of the shapes; says what."""
        random = self._random
        one = random.choice(self._names)
        others = [name for name in self._names if name != one]
        match shape:
            case "one":
                self.part([one], others)
                if random.random() < 0.7:
                    self._metadata.unreachable_from.update([one, *self.strays()])
                if random.random() < 0.3:
                    self.clients[one].cut(to_server=True, to_client=True)
                return f"{one} is cut off"
            case "halves":
                half = random.sample(self._names, len(self._names) // 2)
                self.part(half, [name for name in self._names if name not in half])
                if random.random() < 0.6:
                    self._metadata.unreachable_from.update([*half, *self.strays()])
                return f"{sorted(half)} are cut off from the others"
            case "ring":
                for place, name in enumerate(self._names):
                    neighbours = {
                        self._names[place - 1],
                        self._names[(place + 1) % len(self._names)],
                        name,
                    }
                    # With three all machines are neighbours: then the ring has a gap.
                    far = [other for other in self._names if other not in neighbours]
                    self.part([name], far or ([others[0]] if name == one else []))
                return "only neighbours reach each other"
            case "one-way":
                for other in others:
                    self._cut_way(one, other)
                return f"what {one} says arrives nowhere"
            case "flapping":
                self._flap(one, others, random.randint(2, 6))
                return f"{one} is cut off and reached again in turn"
            case "from-store":
                self._metadata.unreachable_from.update([one, *self.strays()])
                return f"{one} does not reach the store"
            case _:
                self.clients[one].cut(to_server=random.random() < 0.7, to_client=True)
                return f"clients do not reach {one}"

    def strays(self) -> list[str]:
        """Clients on the same side of the cut as nodes without news: they continue with known nodes."""
        return [name for name in self.client_names if self._random.random() < 0.5]

    def _flap(self, one: str, others: list[str], times: int) -> None:
        if not times or self.calm:
            return
        self.part([one], others)
        pause_ms = self._random.randint(50, 700)
        self._schedule.after(pause_ms, self.mend_network)
        self._schedule.after(
            pause_ms + self._random.randint(50, 400), lambda: self._flap(one, others, times - 1)
        )

    def part(self, some: Iterable[str], others: Sequence[str]) -> None:
        """Nothing passes between these and those."""
        for one in some:
            for other in others:
                self._network(one, other).cut(to_server=True, to_client=True)

    def _cut_way(self, source: str, target: str) -> None:
        """Nothing passes from one machine to another; the other way it does."""
        to_server = source < target
        self._network(source, target).cut(to_server=to_server, to_client=not to_server)

    def hold_way(self, source: str, target: str) -> None:
        """Delays everything that one machine sends to another until the network is repaired."""
        self._network(source, target).hold(to_server=source < target)

    def _network(self, one: str, other: str) -> CutNetwork:
        return self._pairs[min(one, other), max(one, other)]

    def mend_network(self) -> None:
        """The machines reach each other."""
        for network in self._pairs.values():
            network.mend()

    def mend(self) -> None:
        """All machines reach each other again."""
        self.mend_network()
        for network in self.clients.values():
            network.mend()
        self._metadata.unreachable_from.clear()
