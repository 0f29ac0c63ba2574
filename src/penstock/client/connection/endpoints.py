"""Several equivalent endpoints: connects to the first that accepts the client.

`client_core.endpoint_search` decides which is tried when.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from penstock.client.client import Client, Connecting
from penstock.client.connection.address import PLAIN, Address
from penstock.client.connection.failure import Unreached
from penstock.client.connection.link import SILENCE
from penstock.client_core.endpoint_search import EndpointSearch, FailedAttempt, tells
from penstock.model.errors import PenstockError

logger = logging.getLogger("penstock.client")


class NoEndpoint(PenstockError):
    """No endpoint accepted this client. The message has the answer of each, the code is that of the most specific answer."""

    def __init__(self, answers: Sequence[tuple[Address, PenstockError]], seconds: float) -> None:
        self.telling = max((error for _, error in answers), key=lambda error: tells(_refusal(error)))
        self.telling_at = [address for address, error in answers if error.code is self.telling.code]
        """The endpoint with this answer, or one with a similar answer."""
        self.said = "; ".join(f"{address}: {_reason(error)}" for address, error in answers)
        tried = f" (tried for {seconds:.0f} s)" if seconds >= 1 else ""
        super().__init__(
            self.telling.code, f"none of {len(answers)} endpoints accepts this client{tried}: {self.said}"
        )


def endpoint_urls(text: str) -> tuple[str, ...]:
    """`HOST:PORT,HOST:PORT` as URLs; URLs stay unchanged.

    The TLS options of the first apply to the later ones that are no URLs: `penstocks://one:9326,two:9326?ca=FILE`.
    """
    words = [word.strip() for word in text.split(",")]
    scheme = words[0].partition("://")[0] if "://" in words[0] else PLAIN
    options = ""
    if not any("://" in word for word in words[1:]):
        words[-1], mark, last = words[-1].partition("?")
        options = mark + last
    return tuple((word if "://" in word else f"{scheme}://{word}") + options for word in words)


async def connect_to_any(endpoints: Sequence[Connecting], seconds: float, *, patient: bool = True) -> Client:
    """A client of the first endpoint in the list that answers; raises the only endpoint's error, or `NoEndpoint`.

    It takes about `seconds`. If it is not `patient`, it only repeats endpoints that were silent: a person at a prompt
    wants to know at once that no server listens there.
    """
    if len(endpoints) == 1:
        return await endpoints[0].connect(seconds, once=not patient)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    search = EndpointSearch(len(endpoints), seconds, begun, patience=patient)
    answers: dict[Connecting, PenstockError] = {}
    while (one_round := search.next_round(loop.time())) is not None:
        for place in one_round.places:
            endpoint = endpoints[place]
            try:
                client = await endpoint.connect(one_round.seconds, once=one_round.once)
            except PenstockError as error:
                answers[endpoint] = error
                search.failed(place, _refusal(error))
                continue
            for other, answer in answers.items():
                logger.warning(
                    "using endpoint %(endpoint)s instead of %(failed)s: %(reason)s",
                    {"endpoint": endpoint.address, "failed": other.address, "reason": _reason(answer)},
                )
            return client
    raise NoEndpoint([(one.address, answers[one]) for one in endpoints], loop.time() - begun)


def _refusal(error: PenstockError) -> FailedAttempt:
    return FailedAttempt(error.code, isinstance(error, Unreached) and error.reason == SILENCE)


def _reason(error: PenstockError) -> str:
    return error.reason if isinstance(error, Unreached) else error.message
