"""Penstock: a self-hosted durable message queue.

    async with penstock.connect() as client:
        queue = await client.create_queue("orders")
        await queue.send(b"hello")

The client is imported when one of its names is first used, so that `import penstock` costs next to nothing.
"""

TYPE_CHECKING = False  # type checkers take it for true, without the cost of importing `typing`
if TYPE_CHECKING:
    from penstock.client import (
        BatchConsumer,
        BlockingBatchConsumer,
        BlockingClient,
        BlockingClientSequencer,
        BlockingConsumer,
        BlockingDeliveredMessages,
        BlockingGroupMessages,
        BlockingGroupReader,
        BlockingLog,
        BlockingLogBatches,
        BlockingLogMessages,
        BlockingMessage,
        BlockingPriorityGroup,
        BlockingProducer,
        BlockingQueue,
        BlockingTicket,
        Client,
        ClientSequencer,
        ClockStatus,
        DeadLetter,
        DeliveredMessages,
        ErrorCode,
        FailedBatch,
        GroupConsumer,
        GroupDescription,
        GroupMessages,
        GroupPlace,
        GroupReader,
        LateArrival,
        LocalClock,
        Log,
        LogBatches,
        LogBounds,
        LoggedMessage,
        LoggedMessages,
        LogMessages,
        LogPartition,
        Message,
        MessageConsumer,
        NodeDescription,
        OffsetGone,
        OutgoingMessage,
        PeekedMessage,
        PeekFilter,
        PenstockError,
        PriorityGroup,
        Producer,
        ProducerError,
        Queue,
        QueueDescription,
        QueueOptions,
        QueueSettings,
        QueueStatistics,
        Reply,
        SentMessage,
        SentMessages,
        Settlement,
        Ticket,
        TimestampId,
        connect,
        connect_blocking,
    )

__version__ = "0.1.0"

__all__ = [
    "BatchConsumer",
    "BlockingBatchConsumer",
    "BlockingClient",
    "BlockingClientSequencer",
    "BlockingConsumer",
    "BlockingDeliveredMessages",
    "BlockingGroupMessages",
    "BlockingGroupReader",
    "BlockingLog",
    "BlockingLogBatches",
    "BlockingLogMessages",
    "BlockingMessage",
    "BlockingPriorityGroup",
    "BlockingProducer",
    "BlockingQueue",
    "BlockingTicket",
    "Client",
    "ClientSequencer",
    "ClockStatus",
    "DeadLetter",
    "DeliveredMessages",
    "ErrorCode",
    "FailedBatch",
    "GroupConsumer",
    "GroupDescription",
    "GroupMessages",
    "GroupPlace",
    "GroupReader",
    "LateArrival",
    "LocalClock",
    "Log",
    "LogBatches",
    "LogBounds",
    "LogMessages",
    "LogPartition",
    "LoggedMessage",
    "LoggedMessages",
    "Message",
    "MessageConsumer",
    "NodeDescription",
    "OffsetGone",
    "OutgoingMessage",
    "PeekFilter",
    "PeekedMessage",
    "PenstockError",
    "PriorityGroup",
    "Producer",
    "ProducerError",
    "Queue",
    "QueueDescription",
    "QueueOptions",
    "QueueSettings",
    "QueueStatistics",
    "Reply",
    "SentMessage",
    "SentMessages",
    "Settlement",
    "Ticket",
    "TimestampId",
    "__version__",
    "connect",
    "connect_blocking",
]


def __getattr__(name: str) -> object:
    """Imports the client when one of its names is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from penstock import client

    value: object = getattr(client, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
