"""The table of roles is whole, and the diagram in the docs is the one that is drawn from it."""

from __future__ import annotations

import pytest

from penstock.replication.primary_secondary.core.roles import (
    PRIMARY,
    TRANSITIONS,
    Event,
    Role,
    Step,
    diagram,
)
from scripts.role_diagram import PAGE, page

OF_A_PRIMARY = {Event.CONFIRMED, Event.MAY_SERVE, Event.MAY_DRAIN, Event.MAY_NEITHER}


def test_every_role_has_a_row_for_each_event_that_it_can_meet() -> None:
    wanted = {
        (role, event) for role in Role for event in Event if role in PRIMARY or event not in OF_A_PRIMARY
    }
    assert set(TRANSITIONS) == wanted


@pytest.mark.parametrize(("role", "event"), sorted(TRANSITIONS))
def test_only_a_primary_stands_down_and_whoever_leads_again_has_stood_down(role: Role, event: Event) -> None:
    steps, then = TRANSITIONS[role, event]
    assert (Step.STAND_DOWN in steps) <= (role in PRIMARY)
    if role in PRIMARY and Step.LEAD in steps:
        assert steps.index(Step.STAND_DOWN) < steps.index(Step.LEAD)
    if role in PRIMARY and not set(then) & set(PRIMARY):
        assert Step.STAND_DOWN in steps
    if not steps:
        assert then == (role,)


def test_clients_are_served_in_one_role_only_and_nothing_follows_on_from_two() -> None:
    for (role, _), (steps, then) in TRANSITIONS.items():
        if Step.OPEN in steps:
            assert then == (Role.SERVING,)
        if role is Role.SERVING and then[0] in (Role.LEADING, Role.DRAINING):
            assert {Step.TURN_AWAY, Step.HOLD_BACK, Step.STAND_DOWN} & set(steps)


def test_every_role_is_reached_from_none() -> None:
    reached = {Role.ABSENT}
    for _ in Role:
        reached |= {
            target for (role, _), row in TRANSITIONS.items() if role in reached for target in row.then
        }
    assert reached == set(Role)


def test_the_page_has_the_diagram_of_the_table() -> None:
    assert diagram() in PAGE.read_text(encoding="utf-8")
    assert page() == PAGE.read_text(encoding="utf-8"), "run `make roles`"
