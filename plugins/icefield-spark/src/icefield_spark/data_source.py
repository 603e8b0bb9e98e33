"""The data source ``icefield``: ``spark.read.format("icefield")`` and ``df.write.format("icefield")``.

The path is the table's name. Options (Spark knows their names in lower case only):

- ``catalog``: the name of a catalog that ``icefield.toml`` or the environment configures, where the Python workers see
  it; and ``catalog.<property>``: properties of the catalog, over the configured ones.
- ``where``: a filter; the frame has the matching rows, and only files that may contain such rows are read.
- ``snapshot-id``, ``ref`` or ``as-of-timestamp`` (milliseconds): read an earlier state.
- ``branch``: write to a branch. ``overwrite-where``: a filter for the rows that mode ``overwrite`` replaces; all rows
  by default. ``snapshot-property.<name>``: a string for the snapshot's summary.

A frame or view stays at the first version that it reads: Spark keeps its plan. Create it again to see later commits.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceReader
from pyspark.sql.types import StructType

from icefield_spark.failures import cause_alone
from icefield_spark.options import STREAM_WRITE, refuse_options, refuse_streaming
from icefield_spark.projecting import check_columns, selected_fields
from icefield_spark.reader import IcefieldReader
from icefield_spark.source import QuerySource
from icefield_spark.streaming.stream_reader import IcefieldStreamReader
from icefield_spark.streaming.stream_writer import IcefieldStreamWriter
from icefield_spark.types import to_spark_schema
from icefield_spark.writer import IcefieldWriter


class IcefieldDataSource(DataSource):
    """Tables by name, in SQL and in Spark's own reader and writer."""

    @classmethod
    def name(cls) -> str:
        return "icefield"

    @cause_alone()
    def schema(self) -> StructType:
        source = QuerySource(dict(self.options))
        table = source.table()
        # Spark pickles this object from here on, so that every later step of a query reads this version.
        self._version = table.metadata_location
        return to_spark_schema(source.shown(table))

    @cause_alone()
    def reader(self, schema: StructType) -> DataSourceReader:
        source = QuerySource(dict(self.options))
        refuse_streaming(source.options)
        table = source.table(getattr(self, "_version", None))
        scan = source.scan(table, lambda columns: selected_fields(columns, schema))
        check_columns(scan.projection, schema)
        return IcefieldReader(scan, schema)

    @cause_alone()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        source = QuerySource(dict(self.options))
        refuse_options(source.options, STREAM_WRITE, "is for df.writeStream")
        return IcefieldWriter(source, schema, overwrite)

    @cause_alone()
    def streamReader(self, schema: StructType) -> IcefieldStreamReader:  # noqa: N802 -- Spark's name
        return IcefieldStreamReader(QuerySource(dict(self.options)), schema)

    @cause_alone()
    def streamWriter(self, schema: StructType, overwrite: bool) -> IcefieldStreamWriter:  # noqa: N802 -- Spark's name
        return IcefieldStreamWriter(QuerySource(dict(self.options)), schema, overwrite)

    def __repr__(self) -> str:  # options may hold credentials
        return "icefield"
