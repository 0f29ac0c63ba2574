"""How a command ends: its exit code, and one red sentence that says what to do next. Never a traceback."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import NoReturn, ParamSpec, TypeVar

import typer

from penstock.cli.output import error_console
from penstock.model.errors import ERRORS, ErrorCode, PenstockError

OK = 0
FAILED = 1
USAGE = 2
NOT_FOUND = 3
REFUSED = 4
UNREACHABLE = 5
INTERRUPTED = 130

MEANINGS = {
    OK: "the command succeeded",
    FAILED: "the command failed; the error gives the reason",
    USAGE: "the command, an option or a setting is wrong",
    NOT_FOUND: "there is no such queue, user, key or limit",
    REFUSED: "the server refused the request for now: the same command may succeed later",
    UNREACHABLE: "no server answered",
    INTERRUPTED: "stopped with Ctrl-C",
}

CODES: dict[ErrorCode, int] = {
    ErrorCode.BAD_REQUEST: USAGE,
    ErrorCode.MESSAGE_TOO_LARGE: USAGE,
    ErrorCode.UNSUPPORTED: USAGE,
    ErrorCode.QUEUE_NOT_FOUND: NOT_FOUND,
    ErrorCode.QUEUE_FULL: REFUSED,
    ErrorCode.TOO_MANY_WAITING: REFUSED,
    ErrorCode.LIMIT_REACHED: REFUSED,
    ErrorCode.DISK_FULL: REFUSED,
    ErrorCode.CLOCK_UNCERTAIN: REFUSED,
    ErrorCode.STAMP_IN_FUTURE: REFUSED,
    ErrorCode.OVERLOADED: REFUSED,
    ErrorCode.SHUTTING_DOWN: REFUSED,
    ErrorCode.UNREACHABLE: UNREACHABLE,
}
"""Exit codes of errors; `exit_code` has those of the others."""

HINTS: dict[ErrorCode, str] = {
    ErrorCode.QUEUE_NOT_FOUND: "`penstock queue list` shows the queues there are.",
    ErrorCode.ACCESS_DENIED: "`penstock user policy put NAME` says what a user may do.",
    ErrorCode.QUEUE_EXISTS: "`penstock queue show` shows its settings, `penstock queue alter` changes them.",
    ErrorCode.QUEUE_FULL: "Receive from it, or raise its limits with `penstock queue alter`.",
    ErrorCode.QUEUE_DAMAGED: "`penstock node show` names the file; the other queues are not affected.",
    ErrorCode.OFFSET_GONE: "Read from `beginning`, the first message of the log; move a group there with `penstock group "
    "seek --to beginning`.",
    ErrorCode.NO_DEAD_LETTER_QUEUE: "`penstock queue alter --dead-letter-queue` gives it one.",
    ErrorCode.DISK_FULL: "Free space on the server's disk; sends then continue automatically.",
}

TRACEBACK_VARIABLE = "PENSTOCK_TRACEBACK"

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class CommandError(Exception):
    """An error that a command itself finds."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.code = code


def exit_code(code: ErrorCode) -> int:
    """Whether the same command may succeed later, unless the table above knows more."""
    return CODES.get(code, REFUSED if ERRORS[code].retryable else FAILED)


def fail(message: str, code: int = FAILED) -> NoReturn:
    """Says what is wrong in one sentence and ends the command."""
    error_console().print(f"error: {message}", style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(code)


def reported(command: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Turns every error of a command into a sentence and an exit code."""

    @functools.wraps(command)
    def guarded(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        try:
            return command(*arguments, **options)
        except CommandError as error:
            fail(str(error), error.code)
        except PenstockError as error:
            hint = HINTS.get(error.code, "")
            sentence = (
                error.message if error.message.endswith((".", "?", "!")) or not hint else f"{error.message}."
            )
            fail(f"{sentence} {hint}".strip(), exit_code(error.code))
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # The reader of our output has closed it. Python would report this again when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(FAILED) from None
        except (typer.Exit, typer.Abort, typer.TyperException):
            raise
        except Exception as error:
            if os.environ.get(TRACEBACK_VARIABLE):
                raise
            fail(
                f"a defect of Penstock: {type(error).__name__}: {error}. Set {TRACEBACK_VARIABLE}=1 to see where "
                "it happens, and please report it."
            )

    return guarded
