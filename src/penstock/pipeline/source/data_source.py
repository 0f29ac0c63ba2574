"""`format("penstock")`: creates readers and writers for Spark."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from penstock.pipeline.columns import MESSAGE_SCHEMA
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.sink.writer import QueueBatchWriter, QueueStreamWriter
from penstock.pipeline.source.batch_reader import LogBatchReader
from penstock.pipeline.source.options import read_options, write_options
from penstock.pipeline.source.stream_reader import LogStreamReader
from penstock.pipeline.source.table_rows import TABLES, table_schema


class PenstockDataSource(DataSource):
    """Queues of Penstock as tables of Spark. `self.options` stays in its original dict, which ignores case."""

    @classmethod
    def name(cls) -> str:
        """The name in `format(…)`."""
        return "penstock"

    def schema(self) -> StructType:
        """The columns of what is read."""
        rows = self.options.get("rows", "messages").strip().lower()
        table = TABLES.get(rows)
        return MESSAGE_SCHEMA if table is None else table_schema(table)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`."""
        return LogBatchReader(read_options(self.options, "read"), self._checked(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For `spark.readStream`."""
        return LogStreamReader(read_options(self.options, "readStream"), self._checked(schema))

    def _checked(self, schema: StructType) -> StructType:
        """Readers have fixed columns, independent of `.schema(…)`."""
        own = self.schema()
        if [(one.name, one.dataType) for one in schema] != [(one.name, one.dataType) for one in own]:
            raise PipelineError(
                f"Penstock's source has the columns {', '.join(own.fieldNames())}: omit .schema(…), and choose "
                "columns with select"
            )
        return schema

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """For `df.write`."""
        return QueueBatchWriter(write_options(self.options, "write"), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """For `df.writeStream`."""
        return QueueStreamWriter(write_options(self.options, "writeStream"), schema, overwrite)
