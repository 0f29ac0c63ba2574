"""Whatever nodes, connections and refusals do: sends are stored in their order, and every request ends once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from hypothesis import example, given
from hypothesis import strategies as st

from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.line_call import State
from penstock.steps.step import Outcome
from penstock.wire.messages import Purge, Receive, Send
from tests.routing.line_world import NODES, LineWorld

REFUSALS = (
    *(ErrorCode.NOT_PRIMARY, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.SHUTTING_DOWN, ErrorCode.OVERLOADED),
    *(ErrorCode.DISK_FULL, ErrorCode.THROTTLED, ErrorCode.CLOCK_UNCERTAIN, ErrorCode.QUEUE_NOT_FOUND),
    *(ErrorCode.QUEUE_FULL, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNREACHABLE, ErrorCode.STAMP_IN_FUTURE),
)


@dataclass
class Producer:
    """Sends without waiting, and sends again in order what it is told to: the plainest client that follows the rule."""

    world: LineWorld
    number: int
    follows: bool
    batches: int = 0
    unanswered: dict[int, bool] = field(default_factory=dict)
    """By batch, in order: whether it is on its way."""
    given_up: set[int] = field(default_factory=set)
    patience_ms: int = 8_000

    def send(self) -> None:
        """One more batch."""
        self.batches += 1
        self.unanswered[self.batches] = False
        self.go_on()

    def go_on(self) -> None:
        """What was refused is sent again when nothing before it is still on its way, or waits."""
        before = 0
        for batch, under_way in list(self.unanswered.items()):
            if not under_way:
                if self.follows and before and not self.unanswered[before]:
                    return
                self.unanswered[batch] = True
                after = before if self.follows else 0
                self.world.start(Send(1, self.number, batch, after=after), partial(self.told, batch))
            before = batch

    def told(self, batch: int, outcome: Outcome) -> None:
        """A batch has its outcome."""
        assert self.unanswered[batch], "told twice"
        error = outcome if isinstance(outcome, PenstockError) else None
        # A client gives up what cannot be retried; of a stamp in the future it does not hear here, and sends the batch again.
        if error and (error.sent_again or error.code is ErrorCode.STAMP_IN_FUTURE) and self.follows:
            self.unanswered[batch] = False
        else:
            if error:
                self.given_up.add(batch)
            del self.unanswered[batch]

    def check(self) -> None:
        """What was acknowledged is stored; in order, where the sends say that they follow each other."""
        stored = [number for producer, number in self.world.log if producer == self.number]
        kept = [number for number in stored if number not in self.given_up]
        assert kept == sorted(kept) or not self.follows
        assert set(kept) >= set(range(1, self.batches + 1)) - self.given_up - set(self.unanswered)


EVENTS = st.sampled_from(
    [
        *("send", "send", "send", "other", "resend", "read", "read", "read", "hear", "hear", "hear"),
        *(
            "break",
            "lost",
            "connect",
            "connect",
            "lead",
            "publish",
            "publish",
            "refuse",
            "wait",
            "long",
            "cancel",
        ),
    ]
)


STAMP_IN_FUTURE = REFUSALS.index(ErrorCode.STAMP_IN_FUTURE)
LOST_REFUSAL = [
    ("send", 0),
    ("send", 0),
    ("refuse", STAMP_IN_FUTURE),
    *[("read", 0), ("hear", 0)] * 3,
    ("resend", 0),
]


@given(
    st.lists(st.tuples(EVENTS, st.integers(0, len(REFUSALS) - 1)), max_size=70),
    st.sampled_from([300, 8_000]),
)
@example([*LOST_REFUSAL, ("read", 0)], 8_000)
@example([("send", 0), ("lead", 1), ("publish", 0), ("send", 0), ("wait", 0), ("long", 0)], 8_000)
def test_sends_are_stored_in_their_order_and_every_request_ends_once(
    events: list[tuple[str, int]], patience_ms: int
) -> None:
    world = LineWorld()
    producers = [
        Producer(world, 7, follows=True),
        Producer(world, 8, follows=True),
        Producer(world, 9, follows=False),
    ]
    others: list[list[Outcome]] = []
    calls = []
    for event, choice in events:
        wires = world.wires()
        match event:
            case "send":
                producers[choice % 3].send()
            case "other":
                outcomes: list[Outcome] = []
                others.append(outcomes)
                request = Purge(1) if choice % 2 else Receive(1, wait_ms=1_000)
                calls.append(world.start(request, outcomes.append, patience_ms))
            case "resend":
                producers[choice % 3].go_on()
            case "read" if wires:
                world.read(wires[choice % len(wires)])
            case "hear" if wires:
                world.hear(wires[choice % len(wires)], choice)
            case "break":
                world.break_off(NODES[choice % 2])
            case "lost":
                world.tell_lost()
            case "connect":
                world.connect(NODES[choice % 2])
            case "lead":
                world.lead((*NODES, None)[choice % 3])
            case "publish":
                world.publish()
            case "refuse":
                world.refusals.append(REFUSALS[choice])
            case "wait":
                world.wait(0.01 * (choice + 1))
            case "long":
                world.wait(0.3 * (choice + 1))
            case "cancel" if calls:
                world.lines.cancel(calls[choice % len(calls)])
                world.run()
            case _:
                pass
        for producer in producers:
            producer.check()
    world.refusals.clear()
    if world.leader is None:
        world.lead("a")
    for node in NODES:
        world.connect(node)
    world.tell_lost()
    world.publish()
    for _ in range(60):
        world.wait(0.3)
        world.serve()
        for producer in producers:
            producer.go_on()
    for producer in producers:
        assert not producer.unanswered
        producer.check()
    assert [len(outcomes) for outcomes in others] == [1] * len(others)
    assert all(call.state is State.ENDED for call in calls)
    purges = sum(isinstance(request, Purge) for request in world.carried_out)
    assert purges <= sum(isinstance(call.ask.request, Purge) for call in calls)
    (line,) = world.lines._lines.values() or [None]
    if line is not None:
        assert (line.parked, line.parked_sends, line.routes, line._tails, len(line.calls)) == (
            0,
            0,
            {},
            {},
            0,
        )


QUIET = st.sampled_from(
    [
        *(
            "send",
            "send",
            "read",
            "read",
            "hear",
            "hear",
            "break",
            "lost",
            "connect",
            "publish",
            "wait",
            "long",
        ),
    ]
)


@given(
    st.lists(st.tuples(QUIET, st.integers(0, 5)), max_size=40),
    st.integers(0, 40),
)
def test_sends_that_say_nothing_keep_their_order_through_a_failover_and_lost_connections(
    events: list[tuple[str, int]], failover_at: int
) -> None:
    """Without refusals, which are what `after` is for."""
    world = LineWorld()
    sent: list[int] = []
    told: list[Outcome] = []
    for place, (event, choice) in enumerate(events):
        wires = world.wires()
        if place == failover_at:
            world.lead("b")
        match event:
            case "send":
                sent.append(len(sent) + 1)
                world.start(Send(1, 7, sent[-1]), told.append)
            case "read" if wires:
                world.read(wires[choice % len(wires)])
            case "hear" if wires:
                world.hear(wires[choice % len(wires)], choice)
            case "break":
                world.break_off(NODES[choice % 2])
            case "lost":
                world.tell_lost()
            case "connect":
                world.connect(NODES[choice % 2])
            case "publish":
                world.publish()
            case "wait":
                world.wait(0.01 * (choice + 1))
            case "long":
                world.wait(0.2 * (choice + 1))
            case _:
                pass
    for node in NODES:
        world.connect(node)
    world.tell_lost()
    world.publish()
    for _ in range(10):
        world.wait(0.3)
        world.serve()
    given_up = len([outcome for outcome in told if isinstance(outcome, PenstockError)])
    assert len(told) == len(sent)
    if not given_up:
        assert [number for _, number in world.log] == sent
