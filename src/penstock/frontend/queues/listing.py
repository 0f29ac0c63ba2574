"""Queues of one account in one region, by name, from the engine's list of all queues."""

from __future__ import annotations

from collections.abc import Callable

from penstock.frontend.context import Context
from penstock.frontend.queues.native_names import arn_of, native_name, native_prefix
from penstock.sqs import parameters
from penstock.sqs.compatibility import LIST_RESULTS
from penstock.sqs.names import QueueArn
from penstock.sqs.paging import decode_token, encode_token
from penstock.steps.asking import ask
from penstock.steps.step import Steps
from penstock.wire.messages import ListQueues, QueueDescription, QueueList

Accept = Callable[[QueueDescription], bool]

ENGINE_PAGE = 1_000


def list_page(
    context: Context,
    owner: QueueArn,
    accept: Accept,
    max_results: int | None,
    token: str | None,
) -> Steps[tuple[list[QueueArn], str | None]]:
    """A page of the queues beside `owner` whose names begin with its name; the token of the next page if pages were
    requested.

    As in SQS: without `max_results` there is one page, and it has no token.
    """
    wanted = parameters.max_results(max_results) or LIST_RESULTS
    after = decode_token(token) if token else ""
    found = yield from find_queues(context, owner, accept, wanted + 1, after)
    more = max_results is not None and len(found) > wanted
    page = found[:wanted]
    return page, encode_token(page[-1].name) if more else None


def find_queues(
    context: Context, owner: QueueArn, accept: Accept, wanted: int, after: str = ""
) -> Steps[list[QueueArn]]:
    """The first queues of an account and region that pass; names that SQS cannot say are left out."""
    home, place = context.home, (owner.region, owner.account)
    prefix = native_prefix(home, *place, owner.name)
    position = native_name(home, *place, after) if after else ""
    found: list[QueueArn] = []
    while True:
        page = yield from ask(ListQueues(prefix, position, ENGINE_PAGE), QueueList)
        for description in page.queues:
            arn = arn_of(home, description.name)
            if arn is not None and (arn.region, arn.account) == place and accept(description):
                found.append(arn)
                if len(found) == wanted:
                    return found
        if not page.more:
            return found
        position = _past(context, owner, page.queues[-1].name)


def _past(context: Context, owner: QueueArn, last: str) -> str:
    """Where to continue: after the last name, and after all others of its account and region if that one is foreign.

    `/` follows `.`, so it sorts after every name that begins with `<account>.<region>.` and before all others.
    """
    arn = arn_of(context.home, last)
    if arn is None or (arn.region, arn.account) == (owner.region, owner.account):
        return last
    return f"{arn.account}.{arn.region}/"
