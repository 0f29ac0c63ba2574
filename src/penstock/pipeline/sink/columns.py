"""The columns that a queue accepts, and the errors for others."""

from __future__ import annotations

from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
)

from penstock.pipeline.errors import PipelineError

_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_SECONDS = (*_WHOLE, FloatType, DoubleType, DecimalType, DayTimeIntervalType)
_TEXT = (StringType,)
TAKEN: dict[str, tuple[tuple[type[DataType], ...], str]] = {
    "body": ((BinaryType, StringType), "binary or string"),
    "group": (_TEXT, "string"),
    "priority": (_WHOLE, "int, 0 to 9"),
    "delay": (_SECONDS, "seconds, or interval day to second"),
    "ttl": (_SECONDS, "seconds, or interval day to second"),
    "attributes": ((MapType,), "map<string,string>"),
    "deduplication_id": (_TEXT, "string"),
}
"""Of each column the types it may have, and how to say that."""


def check_columns(schema: StructType) -> None:
    """Raises with everything that is wrong about the columns, and what they should be."""
    wrong = []
    names = schema.fieldNames()
    if "body" not in names:
        wrong.append("there is no column body, which is required")
    for field in schema.fields:
        if field.name not in TAKEN:
            wrong.append(f"a queue has no column {field.name}")
            continue
        types, said = TAKEN[field.name]
        kind = field.dataType
        fits = isinstance(kind, types)
        if isinstance(kind, MapType):
            fits = isinstance(kind.keyType, StringType) and isinstance(kind.valueType, StringType)
        if not fits:
            wrong.append(f"column {field.name} is {kind.simpleString()} and must be {said}")
    wrong += [
        f"column {name} is there twice" for name in sorted({one for one in names if names.count(one) > 1})
    ]
    if wrong:
        columns = ", ".join(f"{name} ({said})" for name, (_, said) in TAKEN.items())
        raise PipelineError(
            f"these rows cannot be written to a queue: {'; '.join(wrong)}. It takes {columns}: choose and rename "
            'columns, for example df.selectExpr("to_json(struct(*)) AS body")'
        )
