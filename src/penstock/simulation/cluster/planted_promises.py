"""Bugs to plant in what consumers and operators are promised: front ends, and the client library's own decisions."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.client_core import settling
from penstock.client_core.call import Call
from penstock.client_core.settling import Action, Settlement, WholeCall
from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.model.runs import count_of
from penstock.routing import attempts
from penstock.routing.attempts import Attempts
from penstock.routing.native_clients import NativeClients
from penstock.routing.subscription import Replied, Subscription
from penstock.simulation import planted_deletion
from penstock.simulation.cluster.cluster_bug import ClusterBug
from penstock.simulation.cluster.planted_changes import carries_old_settings
from penstock.simulation.cluster.scenario import ClusterScenario
from penstock.simulation.planted_patches import Patch
from penstock.steps.step import Outcome
from penstock.wire import messages


def _credit_is_forgotten() -> Sequence[Patch]:
    def ask(self: Subscription, messages: int) -> None:
        real(self, messages)
        self._credit += messages

    real = Subscription._ask
    return [(Subscription, "_ask", ask)]


def _unused_credit_is_lost() -> Sequence[Patch]:
    def answered(self: Subscription, asked: int, outcome: Replied | PenstockError) -> None:
        if not isinstance(outcome, PenstockError) and isinstance(outcome.answer, messages.Delivery):
            self._credit -= asked - sum(batch.count for batch in outcome.answer.batches)
        real(self, asked, outcome)

    real = Subscription._answered
    return [(Subscription, "_answered", answered)]


def _is_pushed_and_given_back() -> Sequence[Patch]:
    def answer(
        self: NativeClients, connection: int, request_id: int, answer: messages.Answer, body: Buffer = b""
    ) -> None:
        real(self, connection, request_id, answer, body)
        if isinstance(answer, messages.Delivery):
            self._give_back(answer)

    real = NativeClients._answer
    return [(NativeClients, "_answer", answer)]


def _failures_are_told_as_done() -> Sequence[Patch]:
    def fail(self: WholeCall, error: PenstockError) -> None:
        for _, receipt, waiter in self._entries:
            if not waiter.done():
                waiter.set_result(Settlement(count_of(receipt.runs), 0, []))

    return [(WholeCall, "fail", fail)]


def _whatever_is_sent_again_was_done() -> Sequence[Patch]:
    def was_done_before(action: Action, call: Call) -> bool:
        return call.resent > 0

    return [(settling, "was_done_before", was_done_before)]


def _second_answers_say_done() -> Sequence[Patch]:
    def certain(self: Attempts, request: messages.Request, outcome: Outcome) -> Outcome:
        told = real(self, request, outcome)
        if isinstance(told, PenstockError) or not isinstance(request, messages.Delete):
            return told
        return attempts._given_back(told)

    real = Attempts.certain
    return [(Attempts, "certain", certain)]


def _has_library(scenario: ClusterScenario) -> bool:
    return scenario.library_consumers > 0


def _fails_over(scenario: ClusterScenario) -> bool:
    return bool(scenario.faults.crashes_ms or scenario.faults.cuts_ms)


PROMISE_BUGS = {
    "credit-is-forgotten": ClusterBug(
        ("I13",),
        "a front end pushes messages to a consumer for which it has no credit",
        _credit_is_forgotten,
        _has_library,
    ),
    "unused-credit-is-lost": ClusterBug(
        ("liveness",),
        "a front end forgets credit that a receive did not use up, so that a consumer gets nothing in the end",
        _unused_credit_is_lost,
        _has_library,
    ),
    "pushed-and-given-back": ClusterBug(
        ("I4", "I5"),
        "a front end gives messages back that their consumer has",
        _is_pushed_and_given_back,
        _has_library,
    ),
    "failures-are-told-as-done": ClusterBug(
        ("I1", "I2", "I4", "I5"),
        "the client library says that messages are settled when nobody knows",
        _failures_are_told_as_done,
        lambda scenario: _has_library(scenario) and _fails_over(scenario),
    ),
    "what-is-sent-again-was-done": ClusterBug(
        ("I1", "I2", "I4"),
        "the client library takes a delete for done that was sent again and came too late",
        _whatever_is_sent_again_was_done,
        lambda scenario: _has_library(scenario) and _fails_over(scenario),
    ),
    "second-answers-say-done": ClusterBug(
        ("I1", "I2", "I4"),
        "a front end says that messages are deleted when its second attempt came too late",
        _second_answers_say_done,
        lambda scenario: _fails_over(scenario) and not _has_library(scenario),
    ),
    "old-settings-are-carried": ClusterBug(
        ("I11",),
        "a change of a queue that was answered is taken back by one that began before it",
        carries_old_settings,
        lambda scenario: scenario.has_rivals,
    ),
    "deleted-targets-go-unsettled": ClusterBug(
        ("I6",),
        "a partition of a deleted queue is given up before its sources know what has arrived in it",
        planted_deletion.gives_up_the_unsettled,
        lambda scenario: scenario.unsettles_targets,
    ),
    "gone-targets-count-as-reached": ClusterBug(
        ("I1", "I6"),
        "messages leave their queue when the one that they were to go to is deleted, and are nowhere",
        planted_deletion.counts_gone_targets_as_reached,
        lambda scenario: scenario.remakes_targets,
    ),
}
