"""Numbers of what a failover lost never come back: receipts, offsets and generations of before mean nothing else after it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

import msgspec
import pytest

from penstock.backend.node.logbook import busy
from penstock.cluster.layout import sequence_numbers
from penstock.cluster.layout.elections import elected
from penstock.cluster.layout.entries import NodeEntry
from penstock.cluster.layout.sequence_numbers import ASYNC_BLOCK, END_OF_NUMBERS, SYNC_BLOCK
from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.model.limits import BATCH_MESSAGES
from penstock.model.records import NUMBERS_SKIPPED, NumbersSkipped, SettingsChanged
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.partition import Partition
from penstock.queue.state.chunk import CHUNK_MESSAGES
from penstock.storage.replica_log import ReplicaLog
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster
from tests.replication.primary_secondary.node.loose_cluster import LooseCluster, numbers, runs
from tests.replication.primary_secondary.node.test_failover import assert_same


def receipts(delivery: messages.Delivery, received: int | None = None) -> list[messages.Receipt]:
    return [messages.Receipt(delivery.token, runs(delivery), received)]


def outcome(answer: messages.Answer) -> messages.ReceiptOutcome:
    assert isinstance(answer, messages.Settled), answer
    return answer.outcomes[0]


# -- receipts ------------------------------------------------------------------------------------------------


def test_a_receipt_of_a_lost_message_does_nothing_to_another_one() -> None:
    cluster = LooseCluster()
    machine = cluster.cut_off()
    assert numbers(cluster.alone(machine, messages.Send(1), bytes(encode_parts([b"old"])))) == [1]
    old = cluster.alone(machine, messages.Receive(1, 1))
    assert isinstance(old, messages.Delivery)
    cluster.fail_over(machine)

    (number,) = cluster.send(b"new")
    assert number > 1
    new = cluster.receive()
    assert runs(new) == [(number, 1)]
    assert new.token != old.token

    for received in (None, 1):  # by its lease, and by the receive count that it was delivered with
        done = outcome(cluster.ask(messages.Delete(receipts(old, received))))
        assert (done.done, done.gone) == (0, 1)
    stolen = messages.Receipt(old.token, runs(new), 1)
    assert outcome(cluster.ask(messages.Delete([stolen]))).stale == [(number, 1)]
    cluster.ask(messages.Release(receipts(new)))
    assert runs(cluster.receive()) == [(number, 1)], "the new message is still there"


def test_a_lost_lease_does_not_hold_what_was_leased_since() -> None:
    """The message was replicated, its lease was not: the next lease on it has another number."""
    cluster = LooseCluster()
    cluster.send(b"one", b"two")
    cluster.settle(200)
    machine = cluster.cut_off()
    old = cluster.alone(machine, messages.Receive(1, 1))
    assert isinstance(old, messages.Delivery)
    cluster.fail_over(machine)
    new = cluster.receive(1)
    assert (runs(old), runs(new)) == ([(1, 1)], [(1, 1)])
    assert outcome(cluster.ask(messages.Delete(receipts(old)))).stale == [(1, 1)]
    assert outcome(cluster.ask(messages.Extend(receipts(old), 1_000))).stale == [(1, 1)]
    assert outcome(cluster.ask(messages.Delete(receipts(new)))).done == 1


def test_receipts_of_before_a_failover_are_good_where_nothing_was_lost() -> None:
    cluster = LooseCluster()
    cluster.send(b"one", b"two")
    held = cluster.receive(1)
    cluster.settle(200)
    machine = cluster.leader
    cluster.fail_over(machine)
    assert outcome(cluster.ask(messages.Delete(receipts(held)))).done == 1
    assert runs(cluster.receive()) == [(2, 1)]


# -- logs ----------------------------------------------------------------------------------------------------


def test_a_reader_whose_offset_was_lost_reads_every_new_message_once() -> None:
    cluster = LooseCluster(consumption="both")
    cluster.send(b"1", b"2", b"3")
    cluster.settle(200)
    machine = cluster.cut_off()
    lost = numbers(cluster.alone(machine, messages.Send(1), bytes(encode_parts([b"lost"] * 5))))
    assert lost == [4, 5, 6, 7, 8]
    lost_ms = cluster.now_ms
    cluster.fail_over(machine)
    behind = cluster.partition_at(cluster.leader.name).table.next

    for offset in range(1, 10):  # nothing is there yet: whoever is among the lost goes on behind them
        found, following = cluster.read(offset)
        assert (found, following) == (
            ([(n, b"%d" % n) for n in range(offset, 4)], 4) if offset < 4 else ([], behind)
        )
    new = [(behind + index, body) for index, body in enumerate((b"a", b"b", b"c"))]
    assert cluster.send(b"a", b"b", b"c") == [number for number, _ in new]
    for offset in (4, 6, 8, 9, behind - 1, behind):
        assert cluster.read_on(offset) == new
    assert cluster.read_on(2) == [(2, b"2"), (3, b"3"), *new]
    found, following = cluster.read(2)
    assert following == 4, "a slice ends where numbers are left out"

    bounds = cluster.ask(messages.FindOffset(1))
    assert bounds == messages.LogBounds(1, behind + 3, behind + 3, [(4, behind)])
    by_time = cluster.ask(messages.FindOffset(1, lost_ms))
    assert isinstance(by_time, messages.LogBounds)
    assert by_time.found == behind


def test_a_group_goes_on_behind_what_was_lost_and_counts_messages() -> None:
    cluster = LooseCluster(consumption="both")
    cluster.send(b"1", b"2", b"3")
    joined = cluster.ask(messages.JoinGroup(1, "readers", "me"))
    assert isinstance(joined, messages.GroupMembership)
    cluster.settle(200)
    machine = cluster.cut_off()
    cluster.alone(machine, messages.Send(1), bytes(encode_parts([b"lost"] * 5)))
    cluster.alone(machine, messages.LeaveGroup(1, "readers", "me"))
    lost = cluster.alone(machine, messages.JoinGroup(1, "readers", "me"))
    assert isinstance(lost, messages.GroupMembership)
    assert lost.generation != joined.generation
    cluster.fail_over(machine)

    cluster.ask(messages.JoinGroup(1, "readers", "other"))
    for generation in (lost.generation, joined.generation):
        refused = cluster.ask(messages.CommitOffset(1, "readers", 9, "me", generation))
        assert isinstance(refused, messages.Failed)
        assert refused.code == ErrorCode.NOT_A_MEMBER
    mine = cluster.ask(messages.JoinGroup(1, "readers", "me"))
    assert isinstance(mine, messages.GroupMembership)
    assert mine.generation not in (lost.generation, joined.generation)
    cluster.send(b"a", b"b")

    def described() -> messages.GroupDescription:
        listed = cluster.ask(messages.ListGroups(1))
        assert isinstance(listed, messages.GroupList)
        return listed.groups[0]

    assert described().lag_messages == 5, "messages, not numbers"
    cluster.ask(messages.CommitOffset(1, "readers", 6, "me", mine.generation))
    assert (described().offset, described().lag_messages) == (6, 2)
    assert described().lag_ms < 10_000, "since the next message was sent"
    sought = cluster.ask(messages.SeekGroup(1, "readers", 5))
    assert isinstance(sought, messages.GroupDescription)
    assert sought.lag_messages == 2


def test_a_log_that_was_empty_or_is_cut_since_can_be_read_from_before_the_gap() -> None:
    cluster = LooseCluster(consumption="log")
    cluster.send(b"1", b"2")
    cluster.ask(messages.Purge(1))
    cluster.settle(200)
    machine = cluster.cut_off()
    cluster.alone(machine, messages.Send(1), bytes(encode_parts([b"lost"] * 3)))
    cluster.fail_over(machine)
    behind = cluster.partition_at(cluster.leader.name).table.next
    assert cluster.read(3) == ([], behind)
    assert cluster.read(5) == ([], behind)
    gone = cluster.ask(messages.ReadLog(1, 2))
    assert isinstance(gone, messages.Failed)
    assert gone.code == ErrorCode.OFFSET_GONE
    cluster.send(b"new")
    assert cluster.read_on(4) == [(behind, b"new")]


# -- who skips, and how far ----------------------------------------------------------------------------------


def test_several_failovers_in_a_row_leave_nothing_twice() -> None:
    """Each primary takes something alone and is gone; the last one has heard of none of them."""
    cluster = LooseCluster(consumption="both")
    seen: list[int] = cluster.send(b"all")
    cluster.settle(200)
    for name in ("a", "b"):
        machine = cluster.cut_off()
        assert machine.name == name
        seen += numbers(
            cluster.alone(machine, messages.Send(1), bytes(encode_parts([b"of " + name.encode()])))
        )
        machine.crash(power=True)
        cluster.parted = {frozenset(("b", "c"))} if name == "a" else set()
        cluster.settle(2_000)
    assert cluster.leader.name == "c"
    seen += cluster.send(b"of c")
    assert len(seen) == len(set(seen)) == 4
    assert seen == sorted(seen)
    for name in ("a", "b"):
        cluster.machines[name].start()
    cluster.settle(4_000)
    assert_same(cluster)
    assert cluster.read_on(1) == [(seen[0], b"all"), (seen[3], b"of c")]


def test_primaries_that_never_serve_use_up_no_numbers() -> None:
    cluster = LooseCluster()
    cluster.send(b"one")
    cluster.settle(200)
    expected = cluster.entry().numbers_to
    cluster.machines["a"].crash()
    for _ in range(3):  # elected, and gone before the store has heard that it serves
        assert cluster.elect()
        machine = cluster.machines[cluster.entry().primary or ""]
        cluster.hear(machine)
        for _ in range(6):
            machine.turn()
        assert cluster.partition_at(machine.name).table.next == expected
        machine.crash()
        machine.start()
        for one in cluster.machines.values():
            cluster.hear(one)
    assert cluster.entry().serving == 1
    cluster.settle(3_000)
    assert cluster.send(b"two") == [expected]


def test_a_planned_move_leaves_nothing_out() -> None:
    cluster = LooseCluster()
    cluster.send(b"one")
    cluster.put(msgspec.structs.replace(cluster.entry(), hand_over_to="b"))
    cluster.settle(1_000)
    assert cluster.leader.name == "b"
    assert cluster.send(b"two") == [2]


def test_what_is_still_served_is_not_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal has no room just when the primary hears that it is to hand over: it serves until it has."""
    cluster = LooseCluster()
    given = cluster.send(b"one")
    node = cluster.leader.node
    assert node is not None
    logbook = node.replication.state.parts.logbook
    write, full = logbook.write, [True]

    def refusing(partition: Partition, decided: Iterable[PendingRecord]) -> None:
        rows = list(decided)
        if full[0] and any(isinstance(row.record, SettingsChanged) for row in rows):
            raise busy()
        write(partition, rows)

    monkeypatch.setattr(logbook, "write", refusing)
    settings = msgspec.structs.replace(cluster.entry().settings, delay_ms=1)
    cluster.put(msgspec.structs.replace(cluster.entry(), hand_over_to="b", settings=settings))
    machine = cluster.leader
    cluster.hear(machine)
    machine.turn()
    given += numbers(cluster.alone(machine, messages.Send(1), bytes(encode_parts([b"two"]))))
    wanted = [proposal.entry for proposal in machine.proposals]
    assert all(entry.primary == "a" for entry in wanted), "every number that it gives out has to count"
    full[0] = False
    cluster.settle(2_000)
    assert cluster.leader.name == "b"
    given += cluster.send(b"three")
    assert given == [1, 2, 3]


def test_numbers_are_left_out_before_anything_is_served_though_the_journal_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = LooseCluster()
    cluster.send(b"one")
    cluster.settle(200)
    machine = cluster.cut_off()
    (lost,) = numbers(cluster.alone(machine, messages.Send(1), bytes(encode_parts([b"lost"]))))
    tries = count()
    for name in ("b", "c"):
        node = cluster.machines[name].node
        assert node is not None
        logbook = node.replication.state.parts.logbook

        def refusing(
            partition: Partition, decided: Iterable[PendingRecord], write: Any = logbook.write
        ) -> None:
            rows = list(decided)
            if any(isinstance(row.record, NumbersSkipped) for row in rows) and next(tries) < 5:
                raise busy()
            write(partition, rows)

        monkeypatch.setattr(logbook, "write", refusing)
    cluster.fail_over(machine)
    cluster.settle(1_000)
    assert next(tries) > 5
    assert cluster.send(b"new")[0] > lost + 1_000


@pytest.mark.parametrize("failovers", [1, 3])
def test_sync_queues_keep_their_numbers_without_gaps(failovers: int) -> None:
    cluster = LooseCluster(replication="sync")
    expected = 1
    for _ in range(failovers):
        assert cluster.send(b"message") == [expected]
        expected += 1
        machine = cluster.leader
        cluster.fail_over(machine)
        machine.start()
        cluster.settle(3_000)
    assert cluster.send(b"message") == [expected]
    assert cluster.entry().lossless == cluster.entry().epoch
    assert cluster.entry().numbers_to >= expected + SYNC_BLOCK // 2


def unclean(cluster: Cluster, name: str) -> None:
    """An operator lets a node lead, whatever it lacks."""
    node = NodeEntry(node=name, native="", peers="", started_ms=cluster.machines[name].started_ms)
    cluster.put(elected(cluster.entry(), node, "an operator says so", in_sync=[name], unclean=True))


@pytest.mark.parametrize("falls", [False, True])
def test_after_an_unclean_election_a_sync_queue_skips_everything_that_may_have_been_given_out(
    falls: bool,
) -> None:
    """`falls`: the one that an operator chose has cut the others, and is gone before it serves."""
    cluster = LooseCluster(replication="sync", consumption="both", min_in_sync=1)
    cluster.send(b"all")
    cluster.machines["c"].crash()
    cluster.settle(3_000)
    assert cluster.entry().in_sync == ["a", "b"]
    lost = cluster.send(b"lost", b"lost")
    held = cluster.receive(10)
    reserved = cluster.entry().numbers_to
    for name in ("a", "b"):
        cluster.machines[name].crash()
    cluster.machines["c"].start()
    cluster.settle(500)
    unclean(cluster, "c")
    if falls:
        machine = cluster.machines["c"]
        cluster.machines["b"].start()
        cluster.connect()
        for _ in range(40):  # everything but the store
            for one in cluster.machines.values():
                cluster.hear(one)
                one.turn()
                one.proposals.clear()
            for pair in list(cluster.pipes):
                cluster.deliver(pair)
        assert cluster.partition_at("b").totals.sent == 1, "what it had was cut"
        machine.crash()
        node = NodeEntry(node="b", native="", peers="", started_ms=cluster.machines["b"].started_ms)
        cluster.put(elected(cluster.entry(), node, "it was in sync before", in_sync=["b"]))
    cluster.settle(2_000)
    (number,) = cluster.send(b"new")
    assert number >= reserved > max(lost)
    assert outcome(cluster.ask(messages.Delete(receipts(held)))).done == 0
    assert cluster.read_on(2)[-1] == (number, b"new")
    assert runs(cluster.receive()) == [(1, 1), (number, 1)]
    for machine in cluster.machines.values():
        if machine.node is None:
            machine.start()
    cluster.settle(4_000)
    assert_same(cluster)


def with_a_stray(cluster: LooseCluster) -> None:
    """One primary writes a message that nobody else gets, and the next one gives its number to another message."""
    cluster.send(b"all")
    first = cluster.cut_off()
    assert first.name == "a"
    first.request(messages.Send(1), bytes(encode_parts([b"stray"])))
    for _ in range(6):
        first.turn()
    assert cluster.partition_at("a").table.next == 3
    cluster.fail_over(first)
    assert cluster.send(b"told") == [2]
    for name in ("b", "c"):
        cluster.machines[name].crash()
    first.start()
    cluster.settle(500)


@pytest.mark.parametrize("falls", [False, True])
def test_what_was_never_committed_does_not_come_back_under_a_number_that_was_given_out_since(
    falls: bool,
) -> None:
    """`falls`: the one that an operator chose is gone before it serves, and leads again."""
    cluster = LooseCluster(replication="sync", consumption="both", min_in_sync=1)
    with_a_stray(cluster)
    unclean(cluster, "a")
    if falls:
        machine = cluster.machines["a"]
        for _ in range(40):  # everything but the store
            cluster.hear(machine)
            machine.turn()
            machine.proposals.clear()
        machine.crash()
        machine.start()
    cluster.settle(2_000)
    assert cluster.read_on(1) == [(1, b"all")]
    (number,) = cluster.send(b"new")
    assert number > 2
    for name in ("b", "c"):
        cluster.machines[name].start()
    cluster.settle(4_000)
    assert_same(cluster)
    assert cluster.entry().dense == []


def test_what_was_never_committed_goes_also_where_a_primary_fell_before_it_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The log of the primary that served next has one record more before its epoch, in the place of the stray message."""
    cluster = LooseCluster(replication="sync", consumption="both", min_in_sync=1)
    cluster.send(b"all")
    first = cluster.cut_off()
    first.request(messages.Send(1), bytes(encode_parts([b"stray"])))
    for _ in range(6):
        first.turn()
    assert cluster.partition_at("a").table.next == 3
    first.crash()
    cluster.parted.clear()
    cluster.elect(leader="b")
    with monkeypatch.context() as patched:  # everything but the store
        patched.setattr(cluster, "propose", lambda machine: machine.proposals.clear())
        cluster.settle(200)
    assert (cluster.entry().epoch, cluster.entry().serving) == (2, 1)
    assert cluster.partition_at("c").epochs.last == 2
    cluster.machines["b"].crash()
    cluster.settle(2_000)
    assert cluster.send(b"told") == [2]
    cluster.machines["c"].crash()
    first.start()
    cluster.settle(500)
    unclean(cluster, "a")
    cluster.settle(2_000)
    assert cluster.read_on(1) == [(1, b"all")]
    assert min(cluster.send(b"new")) > 2


def test_a_primary_that_cannot_cut_what_was_never_committed_leads_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it needs for that is not in its journal any more. Nobody else has anything."""
    cluster = LooseCluster(replication="sync", consumption="both", min_in_sync=1)
    with_a_stray(cluster)
    monkeypatch.setattr(ReplicaLog, "rebuild_job", lambda self, partition, last, build: None)
    unclean(cluster, "a")
    cluster.settle(2_000)
    assert cluster.read_on(1) == [(1, b"all"), (2, b"stray")]
    (number,) = cluster.send(b"new")
    assert number > 2


def test_a_cut_that_could_not_be_made_in_an_earlier_epoch_is_tried_again() -> None:
    cluster = LooseCluster(replication="sync", consumption="both", min_in_sync=1)
    with_a_stray(cluster)
    node, entry = cluster.machines["a"].node, cluster.entry()
    assert node is not None
    node.replication.follower.follow(entry.partition, entry.epoch).uncut_epoch = entry.epoch
    unclean(cluster, "a")
    cluster.settle(2_000)
    assert cluster.read_on(1) == [(1, b"all")]


def test_a_queue_altered_to_async_is_acknowledged_by_all_until_the_store_knows() -> None:
    """Else the next primary would go by an entry that says that nothing can be lost."""
    cluster = LooseCluster(replication="sync")
    cluster.send(b"one")
    settings = msgspec.structs.replace(cluster.entry().settings, replication="async")
    cluster.put(msgspec.structs.replace(cluster.entry(), settings=settings))
    machine = cluster.cut_off()
    cluster.hear(machine)
    sent = machine.request(messages.Send(1), bytes(encode_parts([b"two"])))
    for _ in range(20):
        cluster.now_ms += 2
        machine.turn()
        machine.proposals.clear()  # the store never hears of it
    assert sent not in machine.answers
    cluster.fail_over(machine)
    assert cluster.send(b"two again") == [2], "nobody was ever told of another one"
    assert cluster.entry().lossless == 0
    assert numbers(cluster.alone(cluster.cut_off(), messages.Send(1), bytes(encode_parts([b"alone"])))) == [3]


def test_a_queue_altered_to_sync_skips_once_more() -> None:
    cluster = LooseCluster()
    cluster.send(b"one")
    settings = msgspec.structs.replace(cluster.entry().settings, replication="sync")
    cluster.put(msgspec.structs.replace(cluster.entry(), settings=settings))
    cluster.settle(500)
    cluster.send(b"two")
    assert cluster.entry().lossless == 0
    machine = cluster.leader
    cluster.fail_over(machine)
    (number,) = cluster.send(b"three")
    assert number > ASYNC_BLOCK
    cluster.settle(500)
    assert cluster.entry().lossless == cluster.entry().epoch
    machine.start()
    cluster.settle(3_000)
    cluster.fail_over(cluster.leader)
    assert cluster.send(b"four") == [number + 1]


# -- what a primary may give out -----------------------------------------------------------------------------


def test_more_numbers_are_noted_in_time_and_none_is_given_out_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sequence_numbers, "ASYNC_BLOCK", 4 * BATCH_MESSAGES)
    cluster = LooseCluster()
    noted = cluster.entry().numbers_to
    assert noted == 10 * CHUNK_MESSAGES
    bodies = [b""] * (BATCH_MESSAGES // 2)
    given: list[int] = []
    for _ in range(8):
        given += cluster.send(*bodies)
        assert given[-1] < cluster.entry().numbers_to
        cluster.settle(200)
    assert cluster.entry().numbers_to > noted

    machine = cluster.leader
    for _ in range(12):  # the store does not answer
        answer = cluster.alone(machine, messages.Send(1), bytes(encode_parts(bodies)))
        machine.proposals.clear()
        if isinstance(answer, messages.Failed):
            assert answer.code == ErrorCode.METADATA_UNAVAILABLE
            break
        given += numbers(answer)
    else:
        pytest.fail("numbers were given out that the store knows nothing of")
    assert given[-1] < cluster.entry().numbers_to
    assert runs(cluster.receive(1)) == [(1, 1)], "everything but sends goes on"
    assert machine.node is not None
    machine.node.replication.proposal_failed(1, cluster.now_ms)
    cluster.settle(1_000)
    assert cluster.send(b"again") == [given[-1] + 1]


def test_a_partition_that_has_used_all_its_numbers_says_so() -> None:
    cluster = LooseCluster()
    cluster.put(msgspec.structs.replace(cluster.entry(), numbers_to=END_OF_NUMBERS))
    cluster.settle(200)
    cluster.fail_over(cluster.leader)
    answer = cluster.ask(messages.Send(1), bytes(encode_parts([b"one too many"])))
    assert isinstance(answer, messages.Failed)
    assert answer.code == ErrorCode.LIMIT_REACHED
    assert cluster.partition_at(cluster.leader.name).table.next == END_OF_NUMBERS


# -- those that come back ------------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [False, True])
def test_a_primary_that_comes_back_is_cut_and_says_how_many_are_lost(whole: bool) -> None:
    """`whole`: it gets the state of its successor instead, because its log goes back too far."""
    cluster = LooseCluster(consumption="both")
    cluster.send(b"1", b"2", b"3")
    cluster.settle(200)
    machine = cluster.cut_off()
    for _ in range(2):
        cluster.alone(machine, messages.Send(1), bytes(encode_parts([b"lost"] * 5)))
    cluster.fail_over(machine)
    cluster.send(*[b"new"] * 20)
    if whole:
        partition = cluster.partition_at(cluster.leader.name)
        for _ in range(30):  # so much is written that the journal of the new primary begins later
            cluster.send(*[bytes(2_000)] * 15)
            cluster.settle(400)
        node = cluster.leader.node
        assert node is not None
        log = node.replication.state.parts.store.replica_log
        assert log is not None
        assert (log.oldest(1) or 0) > 5
        assert partition.index > 30
    machine.start()
    cluster.settle(5_000)
    assert sorted(cluster.entry().in_sync) == ["a", "b", "c"]
    assert_same(cluster)
    assert cluster.partition_at(cluster.leader.name).totals.lost == 10
    found = cluster.read_on(5)
    assert [body for _, body in found][:20] == [b"new"] * 20


def test_what_an_unclean_election_gave_up_is_counted_though_a_replica_has_not_heard_of_it_yet() -> None:
    """The new primary calls before the layout has come."""
    cluster = LooseCluster(replication="sync", min_in_sync=1)
    cluster.send(b"all")
    cluster.machines["c"].crash()
    cluster.settle(3_000)
    cluster.send(b"lost", b"lost")
    cluster.parted = {frozenset("ab"), frozenset("bc")}
    cluster.cut("a", "b")
    cluster.settle(3_000)
    assert cluster.entry().in_sync == ["a"]
    cluster.machines["a"].crash()
    cluster.machines["c"].start()
    cluster.settle(500)
    cluster.parted.clear()
    unclean(cluster, "c")
    cluster.connect()
    for _ in range(40):
        cluster.now_ms += 20
        for machine in cluster.machines.values():
            if machine.name != "b":
                cluster.hear(machine)
            machine.turn()
            cluster.propose(machine)
        for pair in list(cluster.pipes):
            cluster.deliver(pair)
    assert cluster.partition_at("b").totals.sent == 1, "what it had was cut"
    cluster.settle(1_000)
    assert cluster.partition_at("c").totals.lost == 2


def test_replicas_of_an_earlier_version_are_not_told_what_they_cannot_read() -> None:
    cluster = LooseCluster()
    cluster.send(b"one")
    cluster.settle(200)
    cluster.records["c"] = 0
    cluster.tell_nodes()
    machine = cluster.cut_off()
    lost = numbers(cluster.alone(machine, messages.Send(1), bytes(encode_parts([b"lost"]))))
    cluster.fail_over(machine)
    assert cluster.send(b"new") == lost, "as it was before"
    reserved = cluster.entry().numbers_to
    cluster.records.clear()  # it is upgraded
    cluster.tell_nodes()
    machine.start()
    cluster.settle(3_000)
    cluster.fail_over(cluster.leader)
    assert cluster.send(b"newer") == [reserved]


def test_an_epoch_that_should_have_skipped_is_not_noted_as_one_without_a_gap() -> None:
    """A replica of an earlier version lives, so numbers are reused. What was acknowledged under them is not called uncommitted
    when the node that has it is elected."""
    cluster = LooseCluster(replication="sync", consumption="both", min_in_sync=1)
    cluster.records["b"] = NUMBERS_SKIPPED - 1
    cluster.tell_nodes()
    cluster.send(b"one")
    for name in ("b", "c"):
        cluster.machines[name].crash()
    cluster.settle(4_000)
    assert cluster.entry().in_sync == ["a"]
    kept = [b"kept 1", b"kept 2"]
    cluster.send(*kept)
    cluster.machines["a"].crash()
    for name in ("b", "c"):
        cluster.machines[name].start()
    cluster.settle(500)
    unclean(cluster, "c")
    cluster.settle(2_000)
    assert cluster.entry().epoch not in {epoch for epoch, _, _ in cluster.entry().dense}
    for name in ("b", "c"):
        cluster.machines[name].crash()
    cluster.machines["a"].start()
    cluster.settle(500)
    unclean(cluster, "a")
    cluster.settle(2_000)
    assert [body for _, body in cluster.read_on(1)] == [b"one", *kept]
