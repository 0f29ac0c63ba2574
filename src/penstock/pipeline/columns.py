"""Native batches as Arrow's columns: whole buffers are used or joined, and no object is made for a message.

Only messages with attributes, and with groups that are not text, cost something each.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.client.consume.delivered_run import DeliveredRun
from penstock.client.log.logged import LoggedMessages
from penstock.model.batch import ATTRIBUTES, GROUPS, PRIORITIES, Batch

MESSAGE_SCHEMA = StructType(
    [
        StructField("partition", IntegerType(), False),
        StructField("sequence", LongType(), False),
        StructField("time", TimestampType(), False),
        StructField("group", StringType()),
        StructField("priority", IntegerType(), False),
        StructField("attributes", MapType(StringType(), StringType(), False), False),
        StructField("body", BinaryType(), False),
        StructField("receive_count", IntegerType()),
    ]
)
"""The columns of a row that is a message."""

_decode: msgspec.msgpack.Decoder[dict[str, Any]] = msgspec.msgpack.Decoder(dict[str, Any])


def message_batch(slices: Sequence[LoggedMessages], schema: pa.Schema) -> pa.RecordBatch:
    """The messages of slices of one partition, as one batch of rows."""
    parts = [part for one in slices for part in one.parts]
    count = sum(len(one) for one in slices)
    counts = [part.count for part in parts]
    sent_us = np.array([part.head.sent_ms * 1000 for part in parts], np.int64)
    columns = {
        "partition": np.full(count, slices[0].partition, np.int32),
        "sequence": np.concatenate([np.arange(one.first, one.next, dtype=np.int64) for one in slices]),
        "time": np.repeat(sent_us, counts),
        "priority": _priorities(parts, count),
    }
    filled: dict[str, pa.Array] = {
        name: pa.Array.from_buffers(schema.field(name).type, count, [None, pa.py_buffer(values)])
        for name, values in columns.items()
    }
    filled["group"] = _groups(parts, count)
    filled["attributes"] = _attributes(parts, count, schema.field("attributes").type)
    filled["body"] = _bodies(parts, count)
    filled["receive_count"] = pa.nulls(count, pa.int32())
    return pa.RecordBatch.from_arrays([filled[name] for name in schema.names], schema=schema)


def _offsets(sizes: Sequence[NDArray[Any]]) -> NDArray[np.int32]:
    """Where each value begins and the last ends."""
    joined = sizes[0] if len(sizes) == 1 else np.concatenate(sizes)
    offsets = np.zeros(len(joined) + 1, np.int32)
    np.cumsum(joined, out=offsets[1:])
    return offsets


def _bodies(parts: Sequence[DeliveredRun], count: int) -> pa.Array:
    """One batch's bodies lie in the bytes that arrived as Arrow wants them; those of several are joined."""
    batches = [part.batch for part in parts]
    offsets = _offsets([np.frombuffer(batch.sizes, np.uint32) for batch in batches])
    blocks = [batch.data[batch.body_offset :] for batch in batches]
    data = blocks[0] if len(blocks) == 1 else b"".join(blocks)
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)], null_count=0
    )


def _priorities(parts: Sequence[DeliveredRun], count: int) -> NDArray[np.int32]:
    priorities = np.zeros(count, np.int32)
    place = 0
    for part in parts:
        if part.batch.columns & PRIORITIES:
            priorities[place : place + part.count] = np.frombuffer(part.batch.priorities(), np.uint8)
        place += part.count
    return priorities


def _groups(parts: Sequence[DeliveredRun], count: int) -> pa.Array:
    if not any(part.batch.columns & GROUPS for part in parts):
        return pa.nulls(count, pa.string())
    lengths: list[NDArray[Any]] = []
    blocks = []
    for part in parts:
        sizes, block = _names(part.batch, part.count)
        lengths.append(sizes)
        blocks.append(block)
    data = b"".join(blocks)
    present = np.concatenate(lengths) > 0
    if not _is_text(data):
        names = [_text(name) for part in parts for name in part.batch.names(GROUPS) or [b""] * part.count]
        return pa.array(names, pa.string())
    bits = np.packbits(present, bitorder="little")
    buffers = [pa.py_buffer(bits), pa.py_buffer(_offsets(lengths)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), count, buffers)


def _names(batch: Batch, count: int) -> tuple[NDArray[Any], bytes]:
    if not batch.columns & GROUPS:
        return np.zeros(count, np.uint8), b""
    offset, block = batch.offsets[GROUPS]
    lengths = np.frombuffer(batch.data[offset:block], np.uint8)
    return lengths, bytes(batch.data[block : block + int(lengths.sum())])


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _text(name: bytes) -> str | None:
    return name.decode("utf-8", "backslashreplace") if name else None


def _attributes(parts: Sequence[DeliveredRun], count: int, kind: pa.DataType) -> pa.Array:
    offsets = np.zeros(count + 1, np.int32)
    names: list[str] = []
    values: list[str] = []
    place = 0
    for part in parts:
        if part.batch.columns & ATTRIBUTES:
            for index in range(part.count):
                encoded = part.attributes(index)
                if encoded:
                    attributes = _decode.decode(encoded)
                    names += attributes
                    values += map(_value, attributes.values())
                offsets[place + index + 1] = len(names)
        else:
            offsets[place + 1 : place + part.count + 1] = len(names)
        place += part.count
    entries = pa.StructArray.from_arrays(
        [pa.array(names, kind.key_type), pa.array(values, kind.item_type)],
        fields=[kind.key_field, kind.item_field],
    )
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(offsets)], null_count=0, children=[entries])


def _value(value: object) -> str:
    """Text as it is, bytes in base64, numbers and truth as JSON writes them."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return msgspec.json.encode(value).decode()
