"""The data source ``icefield``: ``spark.read.format("icefield")`` and ``df.write.format("icefield")``.

The path is the table's name. Options (Spark knows their names in lower case only):

- ``catalog``: the name of a catalog that ``icefield.toml`` or the environment configures, where the Python workers see
  it; and ``catalog.<property>``: properties of the catalog, over the configured ones.
- ``snapshot-id``, ``ref`` or ``as-of-timestamp`` (milliseconds): read an earlier state.
- ``pinned`` = ``false``: every query reads the table as it is then. A frame or view is pinned to the version that it
  met when it was made, so that a query that reads it twice sees one table; a view for INSERT and SELECT in turn should
  not be.
- ``pushdown`` = ``true``: take Spark's filters. Needs Spark's own switch, ``spark.sql.python.filterPushdown.enabled``,
  which is off by default; with it off, a reader that takes filters fails, so the option is off by default too.
- ``branch``: write to a branch. ``overwrite-where``: what mode ``overwrite`` replaces, as a filter; all by default.
  ``snapshot-property.<name>``: a text for the snapshot's summary.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceReader
from pyspark.sql.types import StructType

from icefield_spark.projecting import check_columns, selected_fields
from icefield_spark.reader import IcefieldReader, PushingReader
from icefield_spark.source import Source
from icefield_spark.types import to_spark_schema
from icefield_spark.writer import IcefieldWriter


class IcefieldDataSource(DataSource):
    """Tables by name, in SQL and in Spark's own reader and writer."""

    @classmethod
    def name(cls) -> str:
        return "icefield"

    def schema(self) -> StructType:
        source = Source(dict(self.options))
        table = source.table()
        if source.is_pinned:
            # Spark pickles this object from here on, so that every later step of a query reads this version.
            self._version = table.metadata_location
        return to_spark_schema(source.scan(table).projection)

    def reader(self, schema: StructType) -> DataSourceReader:
        source = Source(dict(self.options))
        table = source.table(getattr(self, "_version", None))
        scan = source.scan(table, lambda columns: selected_fields(columns, schema))
        check_columns(scan.projection, schema)
        return PushingReader(scan, schema) if source.takes_filters else IcefieldReader(scan, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return IcefieldWriter(Source(dict(self.options)), schema, overwrite)

    def __repr__(self) -> str:  # options may hold credentials
        return "icefield"
