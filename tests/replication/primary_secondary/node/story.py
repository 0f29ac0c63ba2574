"""Stories about replication as text: commands of a person who watches a cluster of three nodes, and what she sees.

A story is a file in `stories/`. Lines that begin with `#` are for the reader. Each command stands on a line of its own, then a line
`----` and what is to be seen, if there is anything, and an empty line. The nodes are the product; the disks, the network and the store are simulated.

Commands:

    create [SETTING=VALUE …]    make a queue with a replica on each node, led by a
    send TEXT …                 send one batch to the primary, and wait for the answer
    begin NAME send TEXT …      send a batch to the node that leads now, and do not wait
    answer NAME                 whether that send was answered
    receive COUNT as NAME       receive from the primary
    delete NAME                 delete what was received under that name
    wait TIME                   let everybody work for that many milliseconds
    part NODE from NODE …       cut connections; what was under way is lost
    heal                        all nodes reach each other again
    power-cut NODE …            machines lose their power, and everything that was not synced
    start NODE …                they start again
    new-disk NODE               a machine loses its disk, and starts with an empty one
    hand-over to NODE           a manager plans that this node leads
    unclean NODE                an operator lets a node lead that is not in sync
    no-elections, elections     whether a manager elects a primary where one is missing
    delete-queue                the queue is deleted
    status                      the partition in the store, and what each node has of it
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from penstock.cluster.layout.elections import elected
from penstock.cluster.layout.entries import NodeEntry
from penstock.model.batch import encode_parts
from penstock.simulation.disk import SimulatedDisk
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import NAMES, Cluster, Machine

RULE = "----"
_ANSWER_MS = 3_000


class StoryCluster(Cluster):
    """A cluster whose manager may be away."""

    has_manager = True

    def elect(self, partition: int = 1, leader: str | None = None) -> bool:
        """A manager elects who has the longest log of those in sync that are up."""
        entry, logs = self.entry(partition), {}
        for name in entry.in_sync:
            node = self.machines[name].node
            position = node.replication.positions([partition]).get(partition) if node is not None else None
            if position is not None and position.fit:
                logs[name] = (position.log_epoch, position.last)
        if not self.has_manager or not logs:
            return False
        chosen = max(logs, key=lambda name: logs[name])
        in_sync = [name for name in entry.in_sync if name in logs]
        self.put(elected(entry, self.node_entry(chosen), "the primary is gone", in_sync))
        return True

    def node_entry(self, name: str) -> NodeEntry:
        """A node as the store has it."""
        return NodeEntry(node=name, native="", peers="", started_ms=self.machines[name].started_ms)


class Story:
    """One cluster, and the names that the story gave to things."""

    def __init__(self) -> None:
        self._cluster = StoryCluster()
        self._sends: dict[str, tuple[Machine, int]] = {}
        self._received: dict[str, messages.Delivery] = {}

    def told(self, line: str) -> list[str]:
        """Does what a line says; what is to be seen then."""
        command, *words = line.split()
        return list(getattr(self, "_" + command.replace("-", "_"))(*words))

    # -- clients ---------------------------------------------------------------------------------------------

    def _create(self, *settings: str) -> Iterator[str]:
        chosen = dict(setting.split("=", 1) for setting in settings)
        values = {name: int(value) if value.isdigit() else value for name, value in chosen.items()}
        self._cluster.create(**values)  # type: ignore[arg-type]  # settings by name
        self._cluster.settle(500)
        yield from self._status()

    def _send(self, *texts: str) -> Iterator[str]:
        primary = self._primary()
        if primary is None:
            yield "no node leads"
            return
        request = primary.request(messages.Send(1), encode_parts([text.encode() for text in texts]))
        yield self._awaited(primary, request)

    def _begin(self, name: str, _send: str, *texts: str) -> Iterator[str]:
        primary = self._primary()
        if primary is None:
            yield "no node leads"
            return
        body = encode_parts([text.encode() for text in texts])
        self._sends[name] = (primary, primary.request(messages.Send(1), body))
        yield f"sent to {primary.name}"

    def _answer(self, name: str) -> Iterator[str]:
        machine, request = self._sends[name]
        yield _shown(machine.answers.get(request)) if machine.node is not None else f"{machine.name} is down"

    def _receive(self, count: str, _as: str, name: str) -> Iterator[str]:
        answer = self._cluster.ask(messages.Receive(1, int(count)))
        if isinstance(answer, messages.Delivery):
            self._received[name] = answer
        yield _shown(answer)

    def _delete(self, name: str) -> Iterator[str]:
        delivery = self._received[name]
        receipt = messages.Receipt(delivery.token, [(head.first, head.count) for head in delivery.batches])
        yield _shown(self._cluster.ask(messages.Delete([receipt])))

    def _delete_queue(self) -> Iterator[str]:
        self._cluster.delete()
        return iter(())

    def _awaited(self, machine: Machine, request: int) -> str:
        for _ in range(_ANSWER_MS // 20):
            if request in machine.answers or machine.node is None:
                break
            self._cluster.settle(20)
        return _shown(machine.answers.get(request))

    def _primary(self) -> Machine | None:
        entry = self._cluster.entry()
        machine = self._cluster.machines[entry.primary] if entry.primary is not None else None
        return machine if machine is not None and machine.node is not None else None

    # -- what happens to it ----------------------------------------------------------------------------------

    def _wait(self, milliseconds: str) -> Iterator[str]:
        self._cluster.settle(int(milliseconds.removesuffix("ms")))
        return iter(())

    def _part(self, one: str, _from: str, *others: str) -> Iterator[str]:
        for other in others:
            self._cluster.parted.add(frozenset((one, other)))
            self._cluster.cut(one, other)
        return iter(())

    def _heal(self) -> Iterator[str]:
        self._cluster.parted.clear()
        return iter(())

    def _power_cut(self, *names: str) -> Iterator[str]:
        for name in names:
            machine = self._cluster.machines[name]
            machine.flush = None  # what was not synced is lost, without a throw of the dice
            machine.disk.loses_all = True
            machine.crash()
        return iter(())

    def _start(self, *names: str) -> Iterator[str]:
        for name in names:
            self._cluster.machines[name].start()
        return iter(())

    def _new_disk(self, name: str) -> Iterator[str]:
        machine = self._cluster.machines[name]
        machine.crash()
        machine.disk = SimulatedDisk(self._cluster.random)
        machine.start()
        return iter(())

    # -- managers and operators ------------------------------------------------------------------------------

    def _no_elections(self) -> Iterator[str]:
        self._cluster.has_manager = False
        return iter(())

    def _elections(self) -> Iterator[str]:
        self._cluster.has_manager = True
        return iter(())

    def _hand_over(self, _to: str, name: str) -> Iterator[str]:
        self._cluster.put(msgspec.structs.replace(self._cluster.entry(), hand_over_to=name))
        return iter(())

    def _unclean(self, name: str) -> Iterator[str]:
        node = self._cluster.node_entry(name)
        self._cluster.put(elected(self._cluster.entry(), node, "an operator says so", [name], unclean=True))
        return iter(())

    # -- looking ---------------------------------------------------------------------------------------------

    def _status(self) -> Iterator[str]:
        entry = self._cluster.entry()
        if not entry.replicas:
            yield "the partition is given up"
        else:
            state = "serves" if entry.serving == entry.epoch else "does not serve yet"
            yield f"epoch {entry.epoch}: {entry.primary or 'nobody'} {state}, in sync: {' '.join(entry.in_sync)}"
        for name in NAMES:
            yield f"  {name}: {self._of(self._cluster.machines[name])}"

    def _of(self, machine: Machine) -> str:
        if machine.node is None:
            return "down"
        state = machine.node.replication.state
        held = state.parts.catalogue.partitions.get(1)
        if held is None:
            return "has nothing"
        led = state.led.get(1)
        role = f"leads, {led.primary.committed} committed" if led is not None else "follows"
        damage = ", damaged" if 1 in state.parts.catalogue.damage else ""
        totals = held.totals
        return (
            f"{role}, log to record {held.index} of epoch {held.epochs.last}; "
            f"messages: {totals.sent} sent, {totals.deleted} deleted, {totals.lost} lost{damage}"
        )


def _shown(answer: messages.Answer | None) -> str:
    match answer:
        case None:
            return "no answer"
        case messages.SendResult():
            runs = ", ".join(f"{first} to {first + count - 1}" for first, count in answer.runs)
            return f"acknowledged: {runs}"
        case messages.Delivery():
            runs = ", ".join(f"{head.first} to {head.first + head.count - 1}" for head in answer.batches)
            return f"received: {runs}" if runs else "nothing to receive"
        case messages.Settled():
            outcome = answer.outcomes[0]
            return f"deleted {outcome.done}, gone before {outcome.gone}, stale {len(outcome.stale)}"
        case messages.Failed():
            return f"refused: {answer.code}"
        case _:
            return type(answer).__name__


def played(text: str) -> str:
    """The story with what is really seen."""
    story, lines, shows = Story(), [], False
    for line in text.splitlines():
        if shows and line:
            continue  # what was seen before
        shows = False
        if line == RULE:
            shows = True
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            seen = story.told(line)
            lines += [RULE, *seen] if seen else []
    return "\n".join(lines).rstrip("\n") + "\n"


def stories() -> list[Path]:
    """All of them."""
    return sorted((Path(__file__).parent / "stories").glob("*.txt"))
