"""Errors between Spark and Penstock, as sentences that say what to do, and how to find them again.

Spark wraps Python's exceptions in its own errors, with stacks of two languages. The sentence is marked, so that it can be
extracted from Spark's error.
"""

from __future__ import annotations

import re

_MARK = "PipelineError"
_DIED = re.compile(r"Error from python worker:(?P<said>.*)\nPYTHONPATH was:", re.DOTALL)
_LOST = (
    # In several ways, of a process that was not there after ten seconds or after a minute, which no setting changes.
    "connect back",
    "Python worker exited unexpectedly",
    "Python daemon failed to launch worker",
)
"""Spark's messages about a Python process of its own that is gone. A process that cannot be started at all is not included."""


class PipelineError(Exception):
    """An error that the user can correct: the message says what is wrong and what to do about it."""


def reason_of(error: BaseException) -> str | None:
    """The sentence inside an error of Spark's, or the error's own if it is ours; None: it is about something else."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        if isinstance(found, PipelineError):
            return str(found)
        sentences = re.findall(rf"{_MARK}: (.+)", str(found))
        if sentences:
            return str(sentences[-1]).strip()
        seen.add(id(found))
        found = found.__cause__ or found.__context__
    return None


def python_was_lost(error: BaseException) -> bool:
    """Whether all that went wrong is that a Python process which Spark starts was late, as on a busy machine, or ended."""
    return reason_of(error) is None and any(words in str(error) for words in _LOST)


def in_short(error: str) -> str:
    """An error of Java without its stack: its first line, or, if that only names the call, the error that caused it and the
    last cause. For a Python process it is the last line of its output, which names the cause.
    """
    if (died := _DIED.search(error)) is not None and died["said"].strip():
        return f"a Python process that Spark started has ended: {died['said'].splitlines()[-1].strip()}"
    first, *others = error.strip().splitlines() or ["Spark does not say why"]
    if others and others[0].startswith(": "):
        first = others[0].removeprefix(": ")
    causes = [line.removeprefix("Caused by: ") for line in others if line.startswith("Caused by: ")]
    return f"{first} ({causes[-1]})" if causes else first
