"""The display of a message: for people, as JSON, or only its body."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import Any

from penstock.cli.output import (
    attribute_json,
    attribute_text,
    body_json,
    body_text,
    console,
    moment,
    moment_json,
    print_json,
    printable,
)
from penstock.client.consume.message import DeadLetter, LateArrival, MessageView, PeekedMessage
from penstock.client.log.logged import LoggedMessage

BODY_CHARACTERS = 2_000
"""The part of a body that is shown on a terminal; `--json` and `--body` show all of it."""


def message_json(message: MessageView) -> dict[str, Any]:
    """Every field that is set."""
    fields: dict[str, Any] = {
        "queue": message.queue_name,
        "sequence": message.sequence,
        **body_json(message.body),
        "sent": moment_json(message.sent_ms),
    }
    if not isinstance(message, LoggedMessage):
        fields["receive_count"] = message.receive_count
        fields["first_received"] = moment_json(message.first_received_ms)
    fields.update(_time_json(message))
    if isinstance(message, PeekedMessage):
        fields["state"] = message.state
    if message.attributes:
        fields["attributes"] = {name: attribute_json(value) for name, value in message.attributes.items()}
    if message.group is not None:
        fields["group"] = message.group
    if message.priority:
        fields["priority"] = message.priority
    if message.deduplication_id is not None:
        fields["deduplication_id"] = message.deduplication_id
    if (dead := message.dead_letter) is not None:
        fields["dead_letter"] = {
            "reason": dead.reason,
            "source": dead.source,
            "source_sequence": dead.sequence,
            "sent": moment_json(_milliseconds(dead.sent_at)),
            "receive_count": dead.receive_count,
            "moved": moment_json(_milliseconds(dead.moved_at)),
        }
    return fields


def _time_json(message: MessageView) -> dict[str, Any]:
    """Its timestamp id, and how late it was."""
    fields: dict[str, Any] = {}
    if (identifier := message.timestamp_id) is not None:
        fields["timestamp_id"] = identifier.to_text()
        fields["stamp_us"] = identifier.time_us
    if (late := message.late) is not None:
        preceded, needed = late.should_have_preceded, late.window_needed
        fields["late"] = {
            "lateness_us": late.lateness // timedelta(microseconds=1),
            "window_needed_us": None if needed is None else needed // timedelta(microseconds=1),
            "should_have_preceded": None if preceded is None else preceded.to_text(),
        }
    return fields


def show_message(
    message: MessageView, *, json: bool, body_only: bool = False, name_queue: bool = False
) -> None:
    """Prints one message; with the name of its queue where it may be of any."""
    if json:
        print_json(message_json(message))
    elif body_only:
        # As it was sent: this is for programs, so nothing is escaped.
        sys.stdout.buffer.write(message.body + b"\n")
        sys.stdout.buffer.flush()
    else:
        _show(message, name_queue)


def _show(message: MessageView, name_queue: bool) -> None:
    target = console()
    number = f"{message.queue_name} #{message.sequence}" if name_queue else f"#{message.sequence}"
    facts = [number, f"sent {moment(message.sent_ms)}"]
    if isinstance(message, PeekedMessage):
        facts.append(message.state)
    if message.receive_count:
        facts.append(f"received {message.receive_count}×")
    if message.group is not None:
        facts.append(f"group {message.group}")
    if message.priority:
        facts.append(f"priority {message.priority}")
    if message.deduplication_id is not None:
        facts.append(f"deduplication id {message.deduplication_id}")
    target.print(_one_line("  ".join(facts)), style="bold cyan", markup=False)
    if (dead := message.dead_letter) is not None:
        target.print(_one_line(f"  {_death(dead)}"), style="yellow", markup=False)
    if not isinstance(message, LoggedMessage) and (late := message.late) is not None:
        target.print(_one_line(f"  {_lateness(late)}"), style="yellow", markup=False)
    for name, value in message.attributes.items():
        target.print(_one_line(f"  {name} = {attribute_text(value)}"), style="dim", markup=False)
    text, encoded = body_text(message.body)
    if encoded:
        target.print("  [base64, the body is not UTF-8]", style="magenta", markup=False)
    if target.is_terminal and len(text) > BODY_CHARACTERS:
        text = f"{text[:BODY_CHARACTERS]}… ({len(message.body):,} bytes; --json shows all)"
    target.print(printable(text), markup=False)


def _lateness(late: LateArrival) -> str:
    needed = late.window_needed
    window = "" if needed is None else f"; a window of {needed.total_seconds():g} s would have had it in time"
    preceded = late.should_have_preceded
    which = "" if preceded is None else f"; it should have preceded {preceded.to_text()}"
    return f"late by {late.lateness.total_seconds():g} s{window}{which}"


def _death(dead: DeadLetter) -> str:
    times = f", received {dead.receive_count}× there" if dead.receive_count else ""
    return f"{dead.reason}: came from {dead.source} #{dead.sequence} at {moment(_milliseconds(dead.moved_at))}{times}"


def _one_line(text: str) -> str:
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _milliseconds(stamp: datetime) -> int:
    return round(stamp.timestamp() * 1000)
