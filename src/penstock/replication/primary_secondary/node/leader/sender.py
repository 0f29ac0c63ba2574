"""The partitions that this node leads: what is sent to which replica next, and what their confirmations commit."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.backend.node.whole_state import StateParts, Walk
from penstock.backend.upkeep.captures import Captures, Wanted
from penstock.cluster.layout.sequence_numbers import END_OF_NUMBERS
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.limits import BATCH_MESSAGES, MEBIBYTE
from penstock.model.records import NumbersSkipped
from penstock.queue.partition import Partition
from penstock.queue.snapshot.capture import Capture
from penstock.replication.primary_secondary.core.epochs import EpochHistory
from penstock.replication.primary_secondary.core.primary import Primary
from penstock.replication.primary_secondary.core.secondary import Continue, CutFirst, SendWhole, approach
from penstock.replication.primary_secondary.node.leader.recent_entries import RecentEntries
from penstock.replication.primary_secondary.node.moves.safe_steps import SafeStep
from penstock.replication.primary_secondary.node.moves.sent_moves import SentMoves
from penstock.replication.primary_secondary.node.peer_stream import PeerStream
from penstock.storage.entry import POSITION_SHIFT
from penstock.storage.entry_read import EntryReadJob
from penstock.storage.errors import DamagedEntryError
from penstock.storage.store import Store
from penstock.wire.peer_messages import Append, Batches, Cut, Image, Lead, Standing

APPEND_BYTES = MEBIBYTE


@dataclass(slots=True)
class Cursor:
    """How far one replica has been sent one partition."""

    stood: bool = False
    """The replica has reported its position. Earlier confirmations may be of a former membership of its node."""
    next: int | None = None
    """The record to send next; None: the replica's position is unknown, or it is cutting its log."""
    reading: bool = False
    """A helper thread reads records for it."""
    capturing: bool = False
    """A state is being made for it, a few pages a turn."""
    parts: StateParts | None = None
    """Of a state that is being sent, those that are not yet under way."""
    walk: Walk | None = None
    """Which batches of that state are to be sent."""
    mark: tuple[int, int] | None = None
    """Of the first records under way: how far the stream must be confirmed, and when they were sent."""


class LedPartition:
    """One partition in one epoch of this node."""

    def __init__(self, partition: Partition, epoch: int, primary: Primary, begun: int, now_ms: int) -> None:
        self.partition_id = partition.partition_id
        self.name = partition.name
        self.epoch = epoch
        self.primary = primary
        self.since_ms = now_ms
        self.begun = begun
        """The index of the record with which the epoch began: nothing is sent before it is on this node's disk, so that
        after a crash this node knows that the epoch was used."""
        self.unclean = 0
        """The newest epoch of the partition that began with an unclean election."""
        self.version = 0
        """The version of the layout's entry that was applied last."""
        self.may_send = False
        self.closes = False
        """Whether this node has asked the store to close the partition: then it serves no clients."""
        self.tells_settings = False
        """Whether the settings are still to be written, though they are what they should be."""
        self.skips: NumbersSkipped | None = None
        """Records to write before it serves: the beginning of the epoch's numbers."""
        self.dense: tuple[int, int, int] | None = None
        """How the epoch began, if its numbers continued where the log ended (`PartitionEntry.dense`)."""
        self.numbers_to = 0
        """Below this a message may get a number (`cluster/layout/sequence_numbers.py`)."""
        self.sent_moves = SentMoves(partition.moves.values())
        self.lost: dict[int, int] = {}
        """Messages that replicas cut and that may have been acknowledged, by the newest epoch of the log that was cut."""
        self.cursors: dict[str, Cursor] = {}
        self.waiting: deque[tuple[int, SafeStep]] = deque()
        """(index, what to do once every replica has that which may be elected next)."""

    def is_member(self, node: str, joined: int | None) -> bool:
        """Whether a replica is the one that the entry means, and not a former one of the same node, or a later one.

        A node of an earlier version does not say which one it is. It is believed where it never had another one.
        """
        follower = self.primary.followers.get(node)
        return follower is not None and follower.joined == (joined or 0)

    def has_stood(self, node: str) -> bool:
        """Whether a replica has reported its position, so that its confirmations count."""
        cursor = self.cursors.get(node)
        return cursor is not None and cursor.stood

    def check_numbers(self, partition: Partition) -> None:
        """Raises unless there are numbers for a batch, however large it is."""
        if partition.table.next + BATCH_MESSAGES <= self.numbers_to:
            return
        if self.numbers_to >= END_OF_NUMBERS:
            raise PenstockError(
                ErrorCode.LIMIT_REACHED,
                f"partition {self.partition_id} of {partition.name!r} has used all its numbers: create the queue again",
            )
        raise PenstockError(
            ErrorCode.METADATA_UNAVAILABLE,
            f"partition {self.partition_id} of {partition.name!r} waits until the metadata store has reserved more numbers; try again",
        )

    def when_everywhere(self, index: int, step: SafeStep) -> bool:
        """Keeps a step until no failover loses anything up to `index`; True: that is so now, and the caller takes the step.

        If this node is deposed before, the step is never taken.

        With `async` that is later than the commit: every replica in sync has it, not only this node.
        """
        if self.primary.everywhere() >= index:
            self.primary.rely(index)
            return True
        self.waiting.append((index, step))
        return False

    def take_everywhere(self) -> list[SafeStep]:
        """An effect: work to do because records are safe from any failover now."""
        steps: list[SafeStep] = []
        everywhere = self.primary.everywhere() if self.waiting else 0
        while self.waiting and self.waiting[0][0] <= everywhere:
            index, step = self.waiting.popleft()
            self.primary.rely(index)
            steps.append(step)
        return steps


class Sender:
    """Fills the streams to other nodes, in batches, as far as their windows allow."""

    def __init__(self, store: Store, recent: RecentEntries, captures: Captures) -> None:
        self._store = store
        self._captures = captures
        self._recent = recent
        self.jobs: list[EntryReadJob] = []
        """Work for the helper thread."""
        self._reads: dict[EntryReadJob, tuple[LedPartition, PeerStream, Cursor, Walk | None]] = {}

    def _begin(self, led: LedPartition, stream: PeerStream, now_ms: int) -> Cursor:
        """Nothing is known of the replica; it has a moment to tell more."""
        led.primary.lost(stream.node)
        follower = led.primary.followers[stream.node]
        if follower.waiting_since_ms is None:
            follower.waiting_since_ms = now_ms
        cursor = led.cursors[stream.node] = Cursor()
        return cursor

    def ask(self, led: LedPartition, stream: PeerStream, now_ms: int) -> None:
        """Asks a replica for its position."""
        self._begin(led, stream, now_ms)
        stream.send(Lead(led.partition_id, led.epoch, led.name, led.unclean))

    def approach(
        self, led: LedPartition, partition: Partition, stream: PeerStream, said: Standing, now_ms: int
    ) -> None:
        """A replica reported its position: it continues there, cuts its log, or gets a whole state."""
        log = self._store.replica_log
        assert log is not None
        oldest = log.oldest(led.partition_id) or partition.index + 1
        theirs = EpochHistory(said.epochs)
        way = approach(partition.epochs, partition.index, oldest, theirs, said.last)
        cursor = self._begin(led, stream, now_ms)
        cursor.stood = True
        if said.whole or isinstance(way, SendWhole):
            self._send_whole(led, partition, stream, cursor)
        elif isinstance(way, CutFirst):
            stream.send(Cut(led.partition_id, led.epoch, way.last))
        else:
            assert isinstance(way, Continue)
            cursor.next = way.previous + 1
            if way.previous == partition.index:  # an empty append makes it report its progress
                self._append(led, partition, stream, cursor, (), now_ms)
        stream.ready[led.partition_id] = None

    def _send_whole(
        self, led: LedPartition, partition: Partition, stream: PeerStream, cursor: Cursor
    ) -> None:
        """Sends a whole state, which is captured in its turn; its index is known when that begins."""
        cursor.capturing = True

        def begun(capture: Capture) -> None:
            cursor.walk = Walk(partition, self._store.appended_position)
            cursor.next = capture.index + 1

        def done(capture: Capture | None) -> None:
            cursor.capturing = False
            cursor.parts = StateParts(capture.buffers) if capture is not None else None
            stream.ready[led.partition_id] = None

        self._captures.ask(
            Wanted(lambda: partition, begun, done, lambda: led.cursors.get(stream.node) is cursor)
        )

    def question(self, led: LedPartition, partition: Partition, stream: PeerStream, now_ms: int) -> None:
        """Makes a replica confirm again that it follows, unless a confirmation of earlier data will say so."""
        cursor = led.cursors.get(stream.node)
        if cursor is not None and cursor.mark is not None and stream.confirmed_bytes >= cursor.mark[0]:
            cursor.mark = None  # it confirmed before it had taken what was sent earlier, as of a state: it says nothing more
        if cursor is not None and cursor.next is not None and cursor.mark is None and led.may_send:
            led.primary.asked(stream.node, now_ms)
            if not cursor.parts and not cursor.capturing:
                self._append(led, partition, stream, cursor, (), now_ms)

    def answered(self, led: LedPartition, stream: PeerStream) -> None:
        """A replica confirms that it follows: that holds for the time at which what it has taken was sent."""
        cursor = led.cursors.get(stream.node)
        if cursor is not None and cursor.mark is not None and stream.confirmed_bytes >= cursor.mark[0]:
            led.primary.vouched(stream.node, cursor.mark[1])
            cursor.mark = None

    def fill(self, led: LedPartition, partition: Partition, stream: PeerStream, now_ms: int) -> None:
        """Sends what there is to send of a partition to a replica."""
        cursor = led.cursors.get(stream.node)
        if cursor is None or cursor.next is None or cursor.capturing or not led.may_send:
            return
        while stream.has_room and cursor.parts:
            assert cursor.walk is not None
            parts = cursor.parts
            image = Image(led.partition_id, led.epoch, cursor.walk.index, parts.taken, parts.count)
            stream.send(image, parts.take())
        while stream.has_room and not cursor.parts and not cursor.reading and cursor.next <= partition.index:
            entries = self._recent.since(led.partition_id, cursor.next, APPEND_BYTES)
            if not entries:
                if not stream.reading and not self._read_on(led, partition, stream, cursor):
                    return  # it is asked for its position again, and continues there
                break
            self._append(led, partition, stream, cursor, entries, now_ms)
        if stream.has_room and not stream.reading and not cursor.parts and cursor.walk is not None:
            self._walk_on(led, partition, stream, cursor)
        if cursor.parts or cursor.next <= partition.index or cursor.walk is not None:
            stream.ready[led.partition_id] = None

    def _append(
        self,
        led: LedPartition,
        partition: Partition,
        stream: PeerStream,
        cursor: Cursor,
        entries: Iterable[tuple[bytes, Buffer]],
        now_ms: int,
    ) -> None:
        assert cursor.next is not None
        sizes: list[tuple[int, int]] = []
        body: list[Buffer] = []
        for head, payload in entries:
            sizes.append((len(head), len(payload)))
            body.append(head)
            if len(payload):
                body.append(payload)
        previous = cursor.next - 1
        stream.send(
            Append(
                led.partition_id,
                led.epoch,
                previous,
                partition.epochs.at(previous),
                led.primary.committed,
                sizes,
            ),
            body,
        )
        cursor.next += len(sizes)
        if cursor.mark is None:
            cursor.mark = (stream.sent_bytes, now_ms)

    # -- what is read by a helper thread ---------------------------------------------------------------------

    def _read_on(self, led: LedPartition, partition: Partition, stream: PeerStream, cursor: Cursor) -> bool:
        """Records that are not in memory come from the journal; False: they are not there either, and a whole state is sent."""
        log = self._store.replica_log
        assert log is not None
        assert cursor.next is not None
        oldest = log.oldest(led.partition_id)
        if oldest is None or cursor.next < oldest:
            stream.send(Lead(led.partition_id, led.epoch, led.name, led.unclean))
            cursor.next = None
            return False
        job = log.read_job(led.partition_id, cursor.next, partition.index)
        if job is not None:
            cursor.reading = stream.reading = True
            self._reads[job] = (led, stream, cursor, None)
            self.jobs.append(job)
        return True

    def _walk_on(self, led: LedPartition, partition: Partition, stream: PeerStream, cursor: Cursor) -> None:
        log, walk = self._store.replica_log, cursor.walk
        assert log is not None
        assert walk is not None
        if self._store.committed_position < walk.needs_position:
            return
        positions = walk.take(partition)
        if not positions:
            cursor.walk = None
            return
        stream.reading = True
        job = log.batches_job(led.partition_id, positions)
        self._reads[job] = (led, stream, cursor, walk)
        self.jobs.append(job)

    @staticmethod
    def _check_batches(job: EntryReadJob, walk: Walk) -> None:
        """A whole batch that is not the one wanted is damage, as one that cannot be read."""
        wrong = walk.first_wrong(job.entries)
        if wrong is not None:
            number, offset = divmod(job.entries[wrong].position, 1 << POSITION_SHIFT)
            job.damaged = DamagedEntryError(f"file {number}", offset, "another batch is there")
            del job.entries[wrong:]

    def job_done(self, job: EntryReadJob, partition: Partition | None, now_ms: int) -> bool:
        """Sends the records that were read, if a replica still waits for them; False if the job was not for a replica."""
        if job not in self._reads:
            return False
        led, stream, cursor, walk = self._reads.pop(job)
        stream.reading = False
        if walk is None:
            cursor.reading = False
        else:
            self._check_batches(job, walk)
            walk.read(len(job.entries))
        if led.cursors.get(stream.node) is not cursor or partition is None or not job.entries:
            return True
        entries = [(entry.head, entry.payload) for entry in job.entries]
        if walk is not None:
            sizes = [(len(head), len(payload)) for head, payload in entries]
            body: list[Buffer] = [piece for entry in entries for piece in entry]
            stream.send(Batches(led.partition_id, led.epoch, walk.index, sizes), body)
        elif cursor.next == job.entries[0].index:
            self._append(led, partition, stream, cursor, entries, now_ms)
        stream.ready[led.partition_id] = None
        return True
