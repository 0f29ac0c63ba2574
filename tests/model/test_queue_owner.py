"""Whose a queue is, by its name."""

from __future__ import annotations

import pytest

from penstock.frontend.queues.native_names import DefaultAccount, arn_of
from penstock.model.queue_owner import NOBODY, is_owned, owner_of

ONE = "111111111111"


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("orders", NOBODY),
        ("penstock.usage", NOBODY),
        (ONE, NOBODY),
        (f"{ONE}.orders", NOBODY),
        (f"{ONE}.us-east-1.", NOBODY),
        (f"{ONE}.us_east.orders", NOBODY),
        (f"1{ONE}.us-east-1.orders", NOBODY),
        (f"{ONE}.us-east-1.orders", ONE),
        (f"{ONE}.us-east-1.orders.fifo", ONE),
        (f"{ONE}.us-east-1.orders.late", ONE),
        (f"{ONE}.us-east-1.what.sqs.cannot.say", ONE),
        (f"{ONE}.us-east-1.orders~3", ONE),
    ],
)
def test_a_name_says_its_owner_or_none(name: str, owner: str) -> None:
    assert owner_of(name) == owner
    arn = arn_of(DefaultAccount("000000000000", "us-east-1"), name)
    if arn is not None:
        assert arn.account == (owner or "000000000000"), "SQS takes it for somebody else's"


def test_owners_are_asked_for_together_and_none_means_all() -> None:
    names = ["orders", f"{ONE}.us-east-1.orders", "222222222222.us-east-1.orders"]
    assert [name for name in names if is_owned(name, ())] == names
    assert [name for name in names if is_owned(name, (ONE,))] == [names[1]]
    assert [name for name in names if is_owned(name, (ONE, NOBODY))] == names[:2]
