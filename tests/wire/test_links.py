"""What every link decides alike: pauses, request ids, when a silent peer is given up, the greeting, what a refusal means."""

from __future__ import annotations

import random

import pytest

from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.backoff import Backoff, Reminders, Retry
from penstock.wire.credentials import Credentials, Prove, server_proof
from penstock.wire.greeting import Greeting
from penstock.wire.handshake import NONCE_BYTES, ClientHandshake, HandshakeError, ServerHandshake
from penstock.wire.liveness import Liveness, Sign
from penstock.wire.messages import PROTOCOL_VERSION, Challenge, Done, Failed, Hello, Welcome
from penstock.wire.refusals import error_of
from penstock.wire.request_ids import LARGEST_REQUEST_ID, RequestIds
from penstock.wire.suspects import Suspects

KEY = Credentials("AKIA", "secret")
OURS, THEIRS = b"o" * NONCE_BYTES, b"t" * NONCE_BYTES


def test_pauses_double_up_to_the_longest_and_begin_again_after_a_success() -> None:
    pauses = Backoff(0.1, 0.5)
    assert [pauses.pause() for _ in range(5)] == [0.1, 0.2, 0.4, 0.5, 0.5]
    pauses.reset()
    assert pauses.pause() == 0.1


def test_a_retry_has_even_pauses_until_its_deadline() -> None:
    retry = Retry(0.1, 5.0, 100.0)
    assert [retry.pause(now) for now in (100.0, 105.0, 105.1)] == [0.1, 0.1, None]


def test_what_goes_on_is_logged_the_first_time_and_after_every_interval() -> None:
    reminders = Reminders(30.0)
    assert not reminders.any_yet
    assert [reminders.is_due(now) for now in (0.0, 29.9, 30.0, 31.0, 60.0)] == [
        True,
        False,
        True,
        False,
        True,
    ]
    assert reminders.any_yet


def test_dice_cut_each_pause_by_up_to_a_half() -> None:
    pauses = Backoff(0.1, 0.5, random.Random(1))
    for ceiling in (0.1, 0.2, 0.4, 0.5, 0.5):
        assert ceiling / 2 <= pauses.pause() <= ceiling


def test_ids_in_use_are_not_given_again_when_they_begin_again() -> None:
    ids = RequestIds(LARGEST_REQUEST_ID - 1)
    assert [ids.next({1}, {2}) for _ in range(3)] == [LARGEST_REQUEST_ID, 3, 4]
    assert ids.next() == 5


def test_a_silent_peer_is_asked_and_then_given_up() -> None:
    liveness = Liveness(patience=1, probes=2)
    silent = [liveness.look(heard=False, waits=True) for _ in range(4)]
    assert silent == [Sign.LIVES, Sign.PROBE, Sign.PROBE, Sign.GIVE_UP]
    assert liveness.look(heard=True, waits=True) is Sign.LIVES
    assert liveness.look(heard=False, waits=True) is Sign.LIVES
    assert liveness.look(heard=False, waits=False) is Sign.LIVES  # it has no reason to say anything
    assert liveness.look(heard=False, waits=True) is Sign.LIVES
    assert liveness.look(heard=False, waits=True) is Sign.PROBE
    liveness.reset()
    assert liveness.look(heard=False, waits=True) is Sign.LIVES


def test_a_server_that_failed_is_asked_last_for_a_while() -> None:
    suspects = Suspects(2.0)
    assert suspects.last(["a", "b"], 0.0) == ["a", "b"]
    suspects.note("a", 0.0)
    assert suspects.last(["a", "b", "c"], 1.9) == ["b", "c", "a"]
    assert suspects.last(["a", "b", "c"], 2.0) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("code", "expected", "message"),
    [
        ("disk-full", ErrorCode.DISK_FULL, "why"),
        ("of-tomorrow", ErrorCode.INTERNAL, "why (unknown error code 'of-tomorrow')"),
    ],
)
def test_a_refusal_becomes_an_error(code: str, expected: ErrorCode, message: str) -> None:
    error = error_of(Failed(code, "why"))
    assert (error.code, error.message) == (expected, message)


def welcome(proof: bytes = b"") -> Welcome:
    return Welcome(PROTOCOL_VERSION, "server", "node", 0, proof=proof)


def test_a_greeting_without_credentials_ends_with_the_welcome() -> None:
    greeting = Greeting("me", None, OURS, "there")
    assert greeting.hello() == Hello([PROTOCOL_VERSION], "me")
    assert greeting.heard(welcome(), "10.0.0.1") == welcome()


def test_a_greeting_with_credentials_proves_and_asks_for_proof() -> None:
    greeting = Greeting("me", KEY, OURS, "there")
    assert greeting.hello() == Hello([PROTOCOL_VERSION], "me", "AKIA", OURS)
    assert isinstance(greeting.heard(Challenge(THEIRS), "10.0.0.1"), Prove)
    proof = server_proof(KEY.secret, KEY.access_key, THEIRS, OURS)
    assert greeting.heard(welcome(proof), "10.0.0.1") == welcome(proof)
    with pytest.raises(PenstockError, match="does not know the secret"):
        greeting.heard(welcome(b"another"), "10.0.0.1")


def test_a_proof_is_bound_to_the_channel_it_was_given_on() -> None:
    greeting = Greeting("me", KEY, OURS, "there")
    greeting.hello()
    said = greeting.heard(Challenge(THEIRS), "10.0.0.1", b"a certificate")
    assert isinstance(said, Prove)
    assert said.channel == b"a certificate"
    proof = server_proof(KEY.secret, KEY.access_key, THEIRS, OURS, b"a certificate")
    assert greeting.heard(welcome(proof), "10.0.0.1", b"a certificate") == welcome(proof)
    with pytest.raises(PenstockError, match="does not know the secret"):
        greeting.heard(welcome(proof), "10.0.0.1", b"another certificate")


@pytest.mark.parametrize(
    ("must_prove", "peer", "taken"), [(False, "127.0.0.1", True), (True, "127.0.0.1", False)]
)
def test_a_server_of_this_machine_need_not_prove_itself_unless_it_did_before(
    must_prove: bool, peer: str, taken: bool
) -> None:
    greeting = Greeting("me", KEY, OURS, "there", must_prove=must_prove)
    greeting.hello()
    if taken:
        assert greeting.heard(welcome(), peer) == welcome()
        return
    with pytest.raises(PenstockError, match="without proving"):
        greeting.heard(welcome(), peer)


def test_a_greeting_says_what_is_wrong() -> None:
    greeting = Greeting("me", None, OURS, "there")
    with pytest.raises(PenstockError, match="not a Penstock server: it answers a greeting with Done"):
        greeting.heard(Done(), "")
    with pytest.raises(PenstockError, match="not a Penstock server"):
        greeting.heard(Challenge(THEIRS), "")  # nobody offered to prove anything
    with pytest.raises(PenstockError, match="not you"):
        greeting.heard(Failed(ErrorCode.UNAUTHENTICATED, "not you"), "")


def test_a_handshake_goes_step_by_step_and_says_why_it_may_have_been_broken_off() -> None:
    server, client = ServerHandshake(b"s" * 16, "peers", THEIRS), ClientHandshake(b"s" * 16, "peers", OURS)
    assert client.why_broken_off(secure=False) is None
    assert "certificate" in str(client.why_broken_off(secure=True))
    proof = client.take(server.challenge())
    assert proof is not None
    assert "another secret" in str(client.why_broken_off(secure=True))
    assert client.take(server.accept(proof)) is None
    assert client.done
    assert client.why_broken_off(secure=True) is None
    stranger = ClientHandshake(b"x" * 16, "peers", OURS)
    with pytest.raises(HandshakeError):
        server.accept(stranger.take(server.challenge()) or b"")
