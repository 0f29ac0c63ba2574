"""The Python client: an asyncio client and its blocking twin, over the native protocol.

Start at `client.py`. `connection/link.py` is the connection that reconnects by itself, `connection/route.py` what a client
knows about one queue; the rest is one noun a file. The client decides nothing about messages: the server does.
"""

from penstock.client.blocking.client import BlockingClient
from penstock.client.blocking.connecting import connect_blocking
from penstock.client.blocking.consumer import BlockingBatchConsumer, BlockingConsumer
from penstock.client.blocking.delivered import BlockingDeliveredMessages, BlockingMessage
from penstock.client.blocking.group_reader import BlockingGroupReader
from penstock.client.blocking.log import BlockingLog
from penstock.client.blocking.priority_group import BlockingGroupMessages, BlockingPriorityGroup
from penstock.client.blocking.producer import BlockingProducer, BlockingTicket
from penstock.client.blocking.queue import BlockingQueue
from penstock.client.blocking.readers import BlockingLogBatches, BlockingLogMessages
from penstock.client.blocking.sequencer import BlockingClientSequencer
from penstock.client.client import Client, connect
from penstock.client.consume.consumer import BatchConsumer, MessageConsumer
from penstock.client.consume.group_consumer import GroupConsumer
from penstock.client.consume.group_messages import GroupMessages
from penstock.client.consume.message import DeadLetter, LateArrival, PeekedMessage
from penstock.client.consume.priority_group import PriorityGroup
from penstock.client.log.group_description import GroupDescription, GroupPlace
from penstock.client.log.group_reader import GroupReader
from penstock.client.log.log import Log, LogBounds, LogPartition
from penstock.client.log.logged import LoggedMessage, LoggedMessages
from penstock.client.log.offset_gone import OffsetGone
from penstock.client.log.readers import LogBatches, LogMessages
from penstock.client.produce.clock import ClockStatus
from penstock.client.produce.outgoing import OutgoingMessage
from penstock.client.produce.outgoing_batch import FailedBatch, ProducerError, Ticket
from penstock.client.produce.producer import Producer
from penstock.client.produce.sent import SentMessage, SentMessages
from penstock.client.produce.sequencer import ClientSequencer
from penstock.client.queue import Queue
from penstock.client.queue_options import QueueOptions
from penstock.client.replies.reply import Reply
from penstock.client.settle.delivered import DeliveredMessages, Message
from penstock.client.settle.settlement import Settlement
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.ordering.local_clock import LocalClock
from penstock.ordering.timestamp_id import TimestampId
from penstock.wire.messages import NodeDescription, PeekFilter, QueueDescription, QueueStatistics

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
    "connect",
    "connect_blocking",
]
