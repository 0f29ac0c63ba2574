"""Several endpoints that stand in for one another: a client of the first that lets it in.

All are tried once and quickly before any is waited for, so that one that is dead (a host that is gone answers nothing, not even
that it refuses) costs a second and not the whole timeout. Then they are tried again, more and more patiently.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from penstock.client.address import PLAIN, Address
from penstock.client.client import Client, Connecting
from penstock.client.failure import Unreached
from penstock.client.link import FINAL, SILENCE
from penstock.model.errors import ErrorCode, PenstockError

log = logging.getLogger("penstock.client")

QUICK_SECONDS = 1.0
"""For each endpoint, the first time."""
GROWTH = 3
"""How much longer each is waited for in every further round."""
_LEAST_SECONDS = 0.01


class NoEndpoint(PenstockError):
    """No endpoint let this client in; the message says what each answered, the code is that of the most telling answer."""

    def __init__(self, answers: Sequence[tuple[Address, PenstockError]], seconds: float) -> None:
        self.telling = max((error for _, error in answers), key=_tells)
        self.telling_at = [address for address, error in answers if error.code is self.telling.code]
        """Whose answer it is, or one like it."""
        self.said = "; ".join(f"{address}: {_reason(error)}" for address, error in answers)
        tried = f" (tried for {seconds:.0f} s)" if seconds >= 1 else ""
        super().__init__(
            self.telling.code, f"none of {len(answers)} endpoints lets this client in{tried}: {self.said}"
        )


def endpoint_urls(text: str) -> tuple[str, ...]:
    """`HOST:PORT,HOST:PORT` as urls; such as are urls already stay as they are.

    What the first says of TLS is said for those after it that are no urls: `penstocks://one:9326,two:9326?ca=FILE`.
    """
    words = [word.strip() for word in text.split(",")]
    scheme = words[0].partition("://")[0] if "://" in words[0] else PLAIN
    options = ""
    if not any("://" in word for word in words[1:]):
        words[-1], mark, last = words[-1].partition("?")
        options = mark + last
    return tuple((word if "://" in word else f"{scheme}://{word}") + options for word in words)


async def connect_to_any(endpoints: Sequence[Connecting], seconds: float, *, patient: bool = True) -> Client:
    """A client of one of them, the first of the list that answers; raises what the only one says, or `NoEndpoint`.

    All of it takes about `seconds`. Who is not `patient` asks only those again that were silent: a person at a prompt wants to
    know at once that nothing listens there.
    """
    if len(endpoints) == 1:
        return await endpoints[0].connect(seconds, once=not patient)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    answers: dict[Connecting, PenstockError] = {}
    left, each, once = seconds, QUICK_SECONDS, True
    while asked := [one for one in endpoints if _worth_asking(answers.get(one), patient=patient)]:
        each = max(min(each, left / len(asked)), _LEAST_SECONDS)
        for endpoint in asked:
            try:
                client = await endpoint.connect(each, once=once)
            except PenstockError as error:
                answers[endpoint] = error
                continue
            for other, answer in answers.items():
                log.warning("%s stands in for %s: %s", endpoint.address, other.address, _reason(answer))
            return client
        once, each = False, each * GROWTH
        left = begun + seconds - loop.time()
        if left < _LEAST_SECONDS:
            break
    raise NoEndpoint([(one.address, answers[one]) for one in endpoints], loop.time() - begun)


def _worth_asking(answer: PenstockError | None, *, patient: bool) -> bool:
    if answer is None:
        return True
    return answer.code not in FINAL if patient else isinstance(answer, Unreached) and answer.reason == SILENCE


def _tells(error: PenstockError) -> int:
    """Who refuses says more than who is not there."""
    if error.code is not ErrorCode.UNREACHABLE:
        return 2
    return int(isinstance(error, Unreached) and error.reason != SILENCE)


def _reason(error: PenstockError) -> str:
    return error.reason if isinstance(error, Unreached) else error.message
