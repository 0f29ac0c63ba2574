"""Runs the probes over both protocols and writes down what came of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.clients.compatibility import message_probes, queue_probes
from tests.clients.compatibility.differences import DIFFERENCES
from tests.clients.compatibility.recording import Recording
from tests.clients.compatibility.stage import Stage

Probe = Callable[[Stage], None]

NEWER_THAN_QUERY: dict[str, list[Probe]] = {"ReceiveMessage": [message_probes.receive_by_the_newer_name]}
"""Probes of members that the last model of the Query protocol does not have."""

HEAD = """# Compatibility with Amazon SQS

This page is written by a test (`make compatibility`) and compared by every run of the suite: each action of the
botocore service model is tried against a running server, through botocore's JSON protocol and through its Query
protocol. A probe makes the call the good way, looks at what came of it, and provokes the errors in the last column.
*works* means that all of it was as AWS documents it and as published recordings of its answers show it; the tests do
not talk to AWS itself. What differs would be named in its place. An action that a newer model brings appears here as
*missing* until it is there.
"""


def snake(action: str) -> str:
    """`SendMessageBatch` is `send_message_batch`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", action).lower()


def probe_of(action: str) -> Probe | None:
    """The function that tries an action, if anybody wrote one."""
    name = snake(action)
    found: Probe | None = getattr(queue_probes, name, None) or getattr(message_probes, name, None)
    return found


def outcome(recording: Recording, probes: list[Probe]) -> str:
    """`works`, or in a few words how the server differs."""
    stage = Stage(recording.client)
    try:
        for probe in probes:
            probe(stage)
    except Exception as error:
        return f"**differs**: {type(error).__name__} {error}".splitlines()[0].strip()
    finally:
        stage.clean_up()
    return "works"


def write_page(json_recording: Recording, query_recording: Recording) -> str:
    """The page, from what the server did just now."""
    recordings = {"json": json_recording, "query": query_recording}
    model: Any = json_recording.client.meta.service_model
    rows = []
    for action in model.operation_names:
        probe = probe_of(action)
        if probe is None:
            rows.append(f"| `{action}` | **missing** | **missing** | | |")
            continue
        outcomes = {}
        for protocol, recording in recordings.items():
            probes = [probe] + (NEWER_THAN_QUERY.get(action, []) if protocol == "json" else [])
            outcomes[protocol] = outcome(recording, probes)
        rows.append(
            f"| `{action}` | {outcomes['json']} | {outcomes['query']} "
            f"| {_members(model, action, json_recording)} | {_errors(action, json_recording, query_recording)} |"
        )
    unseen = _never_provoked(model, json_recording)
    return "\n".join([HEAD, *_actions(rows), "", unseen, "", *_differences(json_recording), "", NEVER])


def _actions(rows: list[str]) -> list[str]:
    head = "| action | JSON | Query | members of the request that were sent | errors that were provoked |"
    return ["## Actions", "", head, "|---|---|---|---|---|", *rows]


def _members(model: Any, action: str, recording: Recording) -> str:
    shape = model.operation_model(action).input_shape
    members = set(shape.members) if shape is not None else set()
    left = sorted(members - recording.sent[action])
    return f"all {len(members)}" if not left else "all but " + ", ".join(f"`{name}`" for name in left)


def _errors(action: str, *recordings: Recording) -> str:
    """The codes that both protocols gave; where they are not of one mind, that is said."""
    first, second = (recording.refused[action] for recording in recordings)
    names = sorted(code.removeprefix("AWS.SimpleQueueService.") for code in first & second)
    text = ", ".join(f"`{name}`" for name in names)
    return text if first == second else f"{text} (**protocols differ**: {sorted(first ^ second)})"


def _never_provoked(model: Any, recording: Recording) -> str:
    """The errors of the model that no probe has seen: nothing is claimed of them."""
    operations = map(model.operation_model, model.operation_names)
    classes = {shape.name for operation in operations for shape in operation.error_shapes}
    unseen = sorted(classes - recording.classes)
    return "Errors of the model that no probe provoked: " + ", ".join(f"`{name}`" for name in unseen) + "."


def _differences(recording: Recording) -> list[str]:
    """What differs on purpose, each statement tried as well."""
    lines = ["## What differs", "", DIFFERS, ""]
    for difference in DIFFERENCES:
        result = outcome(recording, [difference.probe])
        lines.append(f"- {difference.statement}" + ("" if result == "works" else f" ({result})"))
    return lines


DIFFERS = """On purpose, each tried by the same test. With `sqs.compatibility = "strict"` the limits of SQS are kept
and attributes named `Penstock.…` mean nothing."""

NEVER = """## What is not there

- Other services: no IAM (users and policies are Penstock's own, in the same form), no STS (a session token is not
  looked at), no KMS, no SNS, no Lambda event sources, no CloudWatch metrics.
- The quotas that AWS puts on throughput, such as 300 calls a second on a FIFO queue: Penstock's own limits are set with
  `penstock limit`.
- Eventual consistency: SQS may take up to a minute to show a change; one server shows it with the next answer.
- With several front ends before one server, a change of tags, policies and the other attributes that only SQS has (among
  them `ContentBasedDeduplication` and `ReceiveMessageWaitTimeSeconds`) of a queue that another front end already uses
  reaches that one about a tenth of a second later. A new queue is known to all at once, and so are messages, their
  states and the deduplication ids already used: those are the server's.
- A dead letter moves when its last receive ends (by time or by `ChangeMessageVisibility` to 0), not when somebody asks for
  it once more; its count in the dead-letter queue goes on as with SQS.
- A message that a move task brings back keeps its `MessageId`; SQS gives it a new one.
- Changing `DeduplicationScope` of a queue applies to what is sent from then on; SQS stays with the scope it was created
  with. `DelaySeconds` longer than the retention period is refused.
- Move tasks do not take messages along that are in flight while they pass, end after no time, and are not limited to 100
  an account.
- A policy with `Principal: "*"` lets in everybody who signs, not requests without a signature.
- `MessageNotInflight`, `InvalidIdFormat` and `InvalidSecurity` stand in the model and are never answered: where they
  might be, the answer is `InvalidParameterValue`, `ReceiptHandleIsInvalid` or `AccessDenied`.
- The limit of 120,000 messages in flight: only a strict server keeps it.
- Bodies that are not text: a message that came in as bytes through the native protocol is shown in Base64, with the
  system attribute `Penstock.BodyEncoding`.
- `StringListValues` and `BinaryListValues` of message attributes: refused, as SQS does.
"""
