"""Data of the version before numbers were noted: it opens, goes on, and no number that it gave out comes back.

`before_numbers.json.xz` has the disks of three nodes and the entries of their partitions as that version left them: `loose` is an
`async` queue, `tight` a `sync` one. Each got six messages, two of which were received. Then the primary of `loose` was cut off,
took five messages more (7 to 11) and handed them out, and all three nodes were killed.
"""

from __future__ import annotations

import base64
import json
import lzma
from pathlib import Path
from random import Random
from typing import Any

import pytest

from penstock.cluster.layout.elections import elected
from penstock.cluster.layout.entries import NodeEntry, decode_partition
from penstock.cluster.layout.sequence_numbers import UNNOTED_SKIP
from penstock.model.batch import encode_parts
from penstock.queue.state.chunk import CHUNK_MESSAGES
from penstock.simulation.disk import SimulatedDisk
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster
from tests.replication.primary_secondary.node.loose_cluster import LooseCluster, numbers
from tests.replication.primary_secondary.node.test_failover import assert_same

LOOSE, TIGHT = 1, 2
BEFORE: dict[str, Any] = json.loads(
    lzma.decompress((Path(__file__).parent / "before_numbers.json.xz").read_bytes())
)


class UpgradedCluster(LooseCluster):
    """The nodes of before, started by this version, some of them later."""

    def __init__(self, living: tuple[str, ...]) -> None:
        Cluster.__init__(self, 1, names=())
        self.now_ms = BEFORE["now_ms"] + 10_000
        for entry in BEFORE["entries"].values():
            self.put(decode_partition(entry.encode()))
        for name, files in BEFORE["disks"].items():
            machine = self.add(name, SimulatedDisk(Random(name)))
            for path, content in files.items():
                if content is None:
                    machine.disk.make_folder(path)
            for path, content in files.items():
                if content is not None:
                    file = machine.disk.open(path, create=True)
                    file.write_at(0, [base64.b64decode(content)])
                    file.sync()
            if name in living:
                machine.start()
        self.settle(5_000)


def receipt(name: str) -> messages.Receipt:
    token, runs = BEFORE["tokens"][name]
    return messages.Receipt(bytes.fromhex(token), [tuple(run) for run in runs])


def test_entries_of_before_say_nothing_of_numbers() -> None:
    for entry in BEFORE["entries"].values():
        assert not {"numbers_to", "numbers_epoch", "lossless", "unclean"} & json.loads(entry).keys()
        read = decode_partition(entry.encode())
        assert (read.numbers_to, read.numbers_epoch, read.lossless, read.unclean) == (0, 0, 0, 0)


@pytest.mark.parametrize("living", [("b", "c"), ("a", "b", "c")])
def test_nothing_that_was_given_out_comes_back(living: tuple[str, ...]) -> None:
    """With the old primary among them nothing is lost; without it seven to eleven are."""
    cluster = UpgradedCluster(living)
    (number,) = numbers(cluster.ask(messages.Send(LOOSE), bytes(encode_parts([b"new"])), LOOSE))
    assert number >= UNNOTED_SKIP
    found = cluster.read_on(7)
    assert found[-1] == (number, b"new")
    assert [n for n, _ in found[:-1]] == ([7, 8, 9, 10, 11] if "a" in living else [])
    assert cluster.read_on(9)[-1] == (number, b"new"), "an offset of before"

    good = cluster.ask(messages.Delete([receipt("1")]), b"", LOOSE)
    assert good == messages.Settled([messages.ReceiptOutcome(2, 0, [])]), "receipts of before are good"
    new = cluster.ask(messages.Receive(LOOSE, 100), b"", LOOSE)
    assert isinstance(new, messages.Delivery)
    old = cluster.ask(messages.Delete([receipt("lost")]), b"", LOOSE)
    assert isinstance(old, messages.Settled)
    if "a" not in living:  # the lease was lost with them: messages 3 to 6 are out under another one
        assert old.outcomes[0] == messages.ReceiptOutcome(0, 5, [(3, 4)])
        assert [(batch.first, batch.count) for batch in new.batches] == [(3, 2), (5, 2), (number, 1)]
    else:
        assert old.outcomes[0] == messages.ReceiptOutcome(9, 0, [])

    sent = cluster.ask(messages.Send(TIGHT), bytes(encode_parts([b"new"])), TIGHT)
    assert numbers(sent) == [7], "a sync queue goes on as it did"
    assert cluster.ask(messages.Delete([receipt("2")]), b"", TIGHT) == messages.Settled(
        [messages.ReceiptOutcome(2, 0, [])]
    )
    for machine in cluster.machines.values():
        if machine.node is None:
            machine.start()
    cluster.settle(5_000)
    for partition in (LOOSE, TIGHT):
        assert sorted(cluster.entry(partition).in_sync) == ["a", "b", "c"]
        assert_same(cluster, partition)
    assert cluster.entry(LOOSE).numbers_epoch == cluster.entry(LOOSE).epoch
    assert cluster.entry(TIGHT).lossless == cluster.entry(TIGHT).epoch


def test_a_restart_goes_on_with_both_versions_data() -> None:
    cluster = UpgradedCluster(("a", "b", "c"))
    (first,) = numbers(cluster.ask(messages.Send(LOOSE), bytes(encode_parts([b"one"])), LOOSE))
    for machine in cluster.machines.values():
        machine.crash(power=False)
    for machine in cluster.machines.values():
        machine.start()
    cluster.settle(5_000)
    (second,) = numbers(cluster.ask(messages.Send(LOOSE), bytes(encode_parts([b"two"])), LOOSE))
    assert second > first
    assert cluster.read_on(12) == [(first, b"one"), (second, b"two")]


def test_an_unclean_election_on_data_of_before_skips_in_a_sync_queue_too() -> None:
    cluster = UpgradedCluster(())
    cluster.machines["c"].start()
    node = NodeEntry(node="c", native="", peers="", started_ms=cluster.machines["c"].started_ms)
    for partition in (LOOSE, TIGHT):
        entry = elected(cluster.entry(partition), node, "an operator says so", in_sync=["c"], unclean=True)
        cluster.put(entry)
    cluster.machines["b"].start()
    cluster.settle(3_000)
    (number,) = numbers(cluster.ask(messages.Send(TIGHT), bytes(encode_parts([b"new"])), TIGHT))
    assert number == UNNOTED_SKIP + CHUNK_MESSAGES
