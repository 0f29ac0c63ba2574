"""The id of a message in SQS, computed from its first queue and number."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType

_NAME = "penstock_message_id"


def message_id_function(session: SparkSession) -> str:
    """The name of a function of SQL, of a queue's id, a partition and a sequence. For few rows: it is worked out in Python."""
    if not session.catalog.functionExists(_NAME):
        session.udf.register(_NAME, _message_id)
    return _NAME


def _id(queue_id: int, partition: int, sequence: int) -> str:
    from penstock.frontend.messages.message_id import message_id
    from penstock.model.partition_numbers import number_of

    return message_id(queue_id, number_of(partition, sequence))


# PySpark would make something of the types of `_id`, and warn that it cannot.
_message_id = sf.udf(lambda queue_id, partition, sequence: _id(queue_id, partition, sequence), StringType())
