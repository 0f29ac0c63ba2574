"""Every option of `format("penstock")`: its name, what it is when nobody says, and what it is about.

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
        "`HOST:PORT` of the native protocol; several with commas between them share the work, and stand in for one "
        "another. Over TLS `penstocks://HOST:PORT`",
    ),
    Option(
        "ca",
        "",
        READS + WRITES,
        "over TLS: a file of the driver's with the authority that signed the server's certificate; without it "
        "`PENSTOCK_CA` says it, or each machine trusts whom it trusts",
    ),
    Option("queue", "", READS + WRITES, 'the queue; `load("clicks")` and `start("clicks")` name it as well'),
    Option(
        "timeout",
        "30",
        READS + WRITES,
        "for how many seconds endpoints that do not answer are tried, all together: a second each at first, then longer",
    ),
    Option(
        "accessKey",
        "",
        READS + WRITES,
        "the id of an access key, where the server has users; without it the environment of the driver says it: "
        "`PENSTOCK_ACCESS_KEY` or `AWS_ACCESS_KEY_ID`",
    ),
    Option(
        "secretKey",
        "",
        READS + WRITES,
        "the secret of that key, or `PENSTOCK_SECRET_KEY` or `AWS_SECRET_ACCESS_KEY`; it is never sent, and never shown",
    ),
    Option(
        "rows",
        "messages",
        READS,
        "what a row is: `messages`, or `usage` or `lifecycle`, whose messages hold rows of that table",
    ),
    Option(
        "startingOffsets",
        "earliest",
        READS,
        "`earliest`, `latest`, `committed` (where `group` is), or a message for each partition: "
        '`{"0": 1200, "1": 700}`; partitions that are not named are read from their beginning',
    ),
    Option("startingTime", "", READS, "the first message sent then or later, as `2026-05-01T12:00:00Z`"),
    Option(
        "endingOffsets",
        "latest",
        ("read",),
        "`latest`, or for each partition the message before which reading ends; partitions that are not named are "
        "read to their end",
    ),
    Option("endingTime", "", ("read",), "only messages sent before then"),
    Option("partitions", "", READS, "only these partitions of the queue, as `0,2`; without it, all of them"),
    Option(
        "messagesPerTask", "", READS, "how many messages one task reads; without it, as many tasks as pay"
    ),
    Option(
        "failOnDataLoss", "true", READS, "`false`: go on where the log begins, and report what is missing"
    ),
    Option(
        "direct",
        "auto",
        READS,
        "`auto`: tasks read from the nodes of a cluster themselves where those have a door for readers that can be "
        "reached, else through the endpoint; `never`: only through the endpoint",
    ),
    Option("maxMessagesPerTrigger", "", ("readStream",), "how many messages a micro-batch has at most"),
    Option(
        "maxBytesPerTrigger",
        "",
        ("readStream",),
        "about how many bytes a micro-batch has at most; sizes are sampled, and one message at least is read",
    ),
    Option(
        "group",
        "",
        READS,
        "a group of readers: a stream commits there how far it has come, and `committed` begins there",
    ),
    Option(
        "exactlyOnce",
        "true",
        WRITES,
        "`false`: rows are sent without deduplication ids; quicker, and a retried task sends its rows again",
    ),
    Option(
        "writeId",
        "",
        ("write",),
        "names the write: the same one again, within the queue's deduplication window, adds nothing",
    ),
)

SPARKS_OWN = frozenset({"path", "checkpointlocation"})
"""What Spark hands on to every source and sink, in the way it spells it."""
