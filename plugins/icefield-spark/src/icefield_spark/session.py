"""The session: tables as data frames, pruned by column and filter when they are planned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icefield import Catalog, Table, load_catalog
from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysTrue, BooleanExpression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from icefield_spark.chunks import ChunkReader, plan_chunks
from icefield_spark.types import from_spark_schema, to_spark_schema
from icefield_spark.writing import MESSAGE_SCHEMA, ChunkWriter, files_of

PUSHDOWN_SWITCH = "spark.sql.python.filterPushdown.enabled"
_BROADCAST_FROM_BYTES = 1 << 20


def attach(spark: SparkSession, catalog: Catalog | str, **properties: Any) -> IcefieldSession:
    """Join a Spark session and a catalog.

    ``catalog`` is a catalog or the name of a configured one. Sets Spark's switch that lets data sources written in
    Python take filters.
    """
    found = load_catalog(catalog, **properties) if isinstance(catalog, str) else catalog
    spark.conf.set(PUSHDOWN_SWITCH, "true")
    return IcefieldSession(spark, found)


class IcefieldSession:
    """Reads and writes the tables of one catalog with one Spark session.

    Plans are made on the driver; executors read and write the files, in Arrow.
    """

    def __init__(self, spark: SparkSession, catalog: Catalog) -> None:
        self.spark = spark
        self.catalog = catalog

    def table(
        self,
        identifier: str,
        where: str | BooleanExpression | None = None,
        columns: Sequence[str] | None = None,
        *,
        snapshot_id: int | None = None,
        ref: str | None = None,
        as_of_ms: int | None = None,
        case_sensitive: bool = True,
    ) -> DataFrame:
        """A table as a data frame, as it is now: only the files that may match, only the columns that are asked for.

        ``where``: a filter as text or as an object; every row of the frame matches it. ``columns``: names, dotted for
        nested fields; None is all. One of ``snapshot_id``, ``ref`` (a branch or tag) and ``as_of_ms`` (milliseconds
        since the epoch) reads an earlier state. The frame is pinned to that snapshot.
        """
        scan = self.catalog.load_table(identifier).scan(
            row_filter=AlwaysTrue() if where is None else where,
            selected_fields=tuple(columns) if columns is not None else ("*",),
            case_sensitive=case_sensitive,
            snapshot_id=snapshot_id,
        )
        if sum(option is not None for option in (snapshot_id, ref, as_of_ms)) > 1:
            raise InvalidArgument("give one of snapshot_id, ref and as_of_ms")
        if ref is not None:
            scan = scan.use_ref(ref)
        if as_of_ms is not None:
            scan = scan.as_of(as_of_ms)
        schema = to_spark_schema(scan.projection)
        chunks = plan_chunks(scan)
        if not chunks:
            return self.spark.createDataFrame([], schema)
        numbers = self.spark.range(0, len(chunks), 1, len(chunks))
        return numbers.mapInArrow(ChunkReader(scan.context, self._shared(chunks)), schema)

    def create_table(self, identifier: str, schema: DataFrame | spark_types.StructType, **options: Any) -> Table:
        """Create a table with the columns of a data frame or of a Spark schema.

        ``options`` are those of ``Catalog.create_table``: ``partition_spec``, ``sort_order``, ``properties``,
        ``location``.
        """
        columns = schema if isinstance(schema, spark_types.StructType) else schema.schema
        return self.catalog.create_table(identifier, from_spark_schema(columns), **options)

    def append(self, frame: DataFrame, identifier: str, *, branch: str | None = None) -> Table:
        """Add the rows of a data frame to a table; columns go by name."""
        table = self.catalog.load_table(identifier)
        files = self._write(frame, table)
        with table.transaction() as transaction:
            transaction.append_files(files, **_on(branch))
        return table

    def overwrite(
        self,
        frame: DataFrame,
        identifier: str,
        where: str | BooleanExpression | None = None,
        *,
        branch: str | None = None,
    ) -> Table:
        """Replace the rows that ``where`` matches (all, when it is None) by those of a data frame, in one version.

        A file that ``where`` matches in part is rewritten.
        """
        table = self.catalog.load_table(identifier)
        files = self._write(frame, table)
        with table.transaction() as transaction:
            transaction.overwrite_files(files, AlwaysTrue() if where is None else where, **_on(branch))
        return table

    def _write(self, frame: DataFrame, table: Table) -> list[Any]:
        writer = ChunkWriter(table.write_context())
        # One action only: Spark runs the writer again with each.
        rows = frame.mapInArrow(writer, MESSAGE_SCHEMA).collect()
        return files_of([bytes(row.files) for row in rows])

    def _shared(self, chunks: list[bytes]) -> Any:
        """Chunks as executors get them: broadcast where there are many bytes and a Spark context."""
        context = getattr(self.spark, "_sc", None)
        if context is None or sum(map(len, chunks)) < _BROADCAST_FROM_BYTES:
            return chunks
        return context.broadcast(chunks)

    def __repr__(self) -> str:
        return f"IcefieldSession(catalog={self.catalog.name!r})"


def _on(branch: str | None) -> dict[str, str]:
    return {} if branch is None else {"branch": branch}
