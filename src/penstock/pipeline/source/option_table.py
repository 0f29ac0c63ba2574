"""Every option of `format("penstock")`: its name, its default and its meaning.

`docs/reference/spark-source.md` has the same table; a test compares them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Use = Literal["read", "readStream", "write", "writeStream"]

READS: tuple[Use, ...] = ("read", "readStream")
WRITES: tuple[Use, ...] = ("write", "writeStream")


class Option(NamedTuple):
    """One option."""

    name: str
    default: str
    """Empty: there is none."""
    uses: tuple[Use, ...]
    meaning: str


OPTIONS = (
    Option(
        "endpoint",
        "127.0.0.1:9326",
        READS + WRITES,
        "`HOST:PORT` of the native protocol; several, separated by commas, share the work and replace each other on "
        "failure. Over TLS `penstocks://HOST:PORT`",
    ),
    Option(
        "ca",
        "",
        READS + WRITES,
        "with TLS: file on the driver with the authority that signed the server's certificate; default: "
        "`PENSTOCK_CA`, or the authorities that each machine trusts",
    ),
    Option("queue", "", READS + WRITES, 'the queue; `load("clicks")` and `start("clicks")` are short forms'),
    Option(
        "timeout",
        "30",
        READS + WRITES,
        "total seconds to try endpoints that do not answer: at first one second each, then longer",
    ),
    Option(
        "accessKey",
        "",
        READS + WRITES,
        "the id of an access key, if the server has users; default: `PENSTOCK_ACCESS_KEY` or `AWS_ACCESS_KEY_ID` "
        "in the environment of the driver",
    ),
    Option(
        "secretKey",
        "",
        READS + WRITES,
        "the secret of that key; default: `PENSTOCK_SECRET_KEY` or `AWS_SECRET_ACCESS_KEY`; it is never sent and "
        "never shown",
    ),
    Option(
        "rows",
        "messages",
        READS,
        "the kind of rows: `messages`, or `usage` or `lifecycle` for a log whose messages contain rows of that table",
    ),
    Option(
        "startingOffsets",
        "earliest",
        READS,
        "`earliest`, `latest`, `committed` (the position of `group`), or the first message of each partition: "
        '`{"0": 1200, "1": 700}`; other partitions are read from their beginning',
    ),
    Option(
        "startingTime",
        "",
        READS,
        "start at the first message sent at or after this time, such as `2026-05-01T12:00:00Z`",
    ),
    Option(
        "endingOffsets",
        "latest",
        ("read",),
        "`latest`, or for each partition the message before which reading ends; other partitions are read to "
        "their end",
    ),
    Option("endingTime", "", ("read",), "only messages sent before this time"),
    Option("partitions", "", READS, "only these partitions of the queue, such as `0,2`; default: all"),
    Option(
        "messagesPerTask",
        "",
        READS,
        "number of messages for each task; default: chosen by the number of rows",
    ),
    Option(
        "failOnDataLoss",
        "true",
        READS,
        "`false`: if the log has removed messages, continue at its beginning and report the missing ones",
    ),
    Option(
        "direct",
        "auto",
        READS,
        "`auto`: tasks read from the nodes of a cluster directly if the nodes have a port for readers that can be "
        "reached, otherwise through the endpoint; `never`: only through the endpoint",
    ),
    Option("maxMessagesPerTrigger", "", ("readStream",), "maximum number of messages in a micro-batch"),
    Option(
        "maxBytesPerTrigger",
        "",
        ("readStream",),
        "approximate maximum of bytes in a micro-batch, estimated from samples; at least one message is read",
    ),
    Option(
        "group",
        "",
        READS,
        "a consumer group: a stream commits its progress there, and `committed` begins at its position",
    ),
    Option(
        "exactlyOnce",
        "true",
        WRITES,
        "`false`: send rows without deduplication ids; this is faster, but a retried task sends its rows again",
    ),
    Option(
        "writeId",
        "",
        ("write",),
        "id of the write: repeating a write with the same id within the queue's deduplication window adds nothing",
    ),
)

SPARKS_OWN = frozenset({"path", "checkpointlocation"})
"""Options that Spark passes to every source and sink, in its spelling."""
