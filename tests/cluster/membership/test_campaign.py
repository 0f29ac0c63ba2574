"""A campaign whose answers come late, or after others have acted: no lease is left behind, and no candidate leads where the election is taken."""

from __future__ import annotations

from penstock.cluster.membership.campaign import Campaign, Deposed, Effect, Elected
from penstock.cluster.membership.store_requests import Ask, Done, Found, Grant, Granted, Look, Put, Revoke

LEASE_MS = 3_000


def _requests(effects: list[Effect]) -> list[object]:
    return [effect.request for effect in effects if isinstance(effect, Ask)]


def _question(effects: list[Effect]) -> int:
    return [effect.number for effect in effects if isinstance(effect, Ask)][-1]


def _asks_for_a_lease() -> tuple[Campaign, int]:
    """A candidate that has seen that no candidate leads; the question for its lease is on its way."""
    campaign = Campaign("manager", "node-1", LEASE_MS, 0)
    effects = campaign.tick(0)
    assert [type(request) for request in _requests(effects)] == [Look]
    effects = campaign.answered(_question(effects), Found(None, 5), 1)
    assert _requests(effects) == [Grant(LEASE_MS)]
    return campaign, _question(effects)


def test_a_lease_that_is_granted_after_its_candidate_resigned_is_given_back() -> None:
    campaign, question = _asks_for_a_lease()
    assert not _requests(campaign.resign())
    assert _requests(campaign.answered(question, Granted(77), 10)) == [Revoke(77)]
    assert not campaign.holds(10)


def test_who_holds_no_office_has_none_to_give_up() -> None:
    campaign, _ = _asks_for_a_lease()
    assert campaign.give_up(5) == []


def test_an_office_that_was_taken_before_its_making_was_answered_is_not_held() -> None:
    """The watch overtakes the answer: the entry was made, and is another candidate's since."""
    campaign, question = _asks_for_a_lease()
    effects = campaign.answered(question, Granted(77), 10)
    assert [type(request) for request in _requests(effects)] == [Put]
    question = _question(effects)
    assert not campaign.heard(b"node-2", 9, 11)
    effects = campaign.answered(question, Done(8), 12)
    assert effects[0] == Elected(8)
    assert effects[1] == Deposed("another node manages the cluster")
    assert _requests(effects) == [Revoke(77)]
    assert not campaign.holds(12)
