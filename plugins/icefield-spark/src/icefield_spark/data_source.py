"""The data source ``icefield``: ``spark.read.format("icefield")`` and ``df.write.format("icefield")``.

The path is the table's name. Options:

- ``catalog``: the name of a catalog that ``icefield.toml`` or the environment configures, where the Python workers see
  it; or ``catalog.<property>``: the catalog's properties themselves.
- ``snapshot-id``, ``ref`` or ``as-of-timestamp`` (milliseconds): read an earlier state.
- ``pushdown`` = ``true``: take Spark's filters. Needs Spark's own switch, ``spark.sql.python.filterPushdown.enabled``,
  which is off by default; with it off, a reader that takes filters fails, so the option is off by default too.
- ``branch``: write to a branch.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from icefield import Table, load_catalog
from icefield.errors import IcefieldError, InvalidArgument
from icefield.expressions import AlwaysTrue, And, BooleanExpression
from icefield.scan import TableScan
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    Filter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from icefield_spark.chunks import plan_chunks, read_chunk
from icefield_spark.filters import to_expression
from icefield_spark.types import to_spark_schema
from icefield_spark.writing import ChunkWriter, files_of


class IcefieldDataSource(DataSource):
    """Tables by name, in SQL and in Spark's own reader and writer."""

    @classmethod
    def name(cls) -> str:
        return "icefield"

    def schema(self) -> StructType:
        scan = _scan(self._table(), self.options)
        # Pinned here, so that every later step of the query reads this snapshot.
        self._pinned = None if scan.snapshot is None else scan.snapshot.snapshot_id
        return to_spark_schema(scan.projection)

    def reader(self, schema: StructType) -> DataSourceReader:
        pinned = getattr(self, "_pinned", None)
        pushes = self.options.get("pushdown", "false").lower() == "true"
        kind = PushingReader if pushes else IcefieldReader
        return kind(_Source(dict(self.options), pinned), schema.fieldNames())

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return IcefieldWriter(_Source(dict(self.options), None), overwrite)

    def _table(self) -> Table:
        return _Source(dict(self.options), None).table()


@dataclass(frozen=True, slots=True)
class _Source:
    """The options of a query, and the snapshot that it is pinned to."""

    options: dict[str, str]
    snapshot_id: int | None

    def table(self) -> Table:
        """Load the table anew."""
        identifier = self.options.get("path")
        if not identifier:
            raise InvalidArgument('name the table: spark.read.format("icefield").load("namespace.table")')
        prefix = "catalog."
        given = {key[len(prefix) :]: value for key, value in self.options.items() if key.startswith(prefix)}
        return load_catalog(self.options.get("catalog"), **given).load_table(identifier)

    def __repr__(self) -> str:  # options may hold credentials
        return f"icefield {self.options.get('path')}"


@dataclass(frozen=True, slots=True)
class _Chunk(InputPartition):
    """One partition: a pickled chunk of tasks and the pickled context of the scan."""

    chunk: bytes
    context: bytes

    def __repr__(self) -> str:
        return "icefield"


class IcefieldReader(DataSourceReader):
    """Plans in the driver's Python worker, reads on executors."""

    def __init__(self, source: _Source, columns: Sequence[str]) -> None:
        self._source = source
        self._columns = tuple(columns)
        self._filter: BooleanExpression = AlwaysTrue()

    def partitions(self) -> Sequence[InputPartition]:
        scan = self._plan()
        context = pickle.dumps(scan.context)
        return [_Chunk(chunk, context) for chunk in plan_chunks(scan)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, _Chunk):  # for an empty plan Spark makes a partition of its own
            yield from read_chunk(partition.chunk, pickle.loads(partition.context))

    def _plan(self) -> TableScan:
        table = self._source.table()
        return _scan(table, self._source.options, self._source.snapshot_id, self._filter, self._columns)


class PushingReader(IcefieldReader):
    """The same, taking Spark's filters. Spark refuses a reader with this method while its switch is off."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 -- Spark's name
        schema = self._source.table().schema()
        for found in filters:
            made = to_expression(found, schema)
            if made is not None:
                self._filter = And(self._filter, made[0])
            if made is None or not made[1]:
                yield found


@dataclass(frozen=True, slots=True)
class _Written(WriterCommitMessage):
    files: bytes


class IcefieldWriter(DataSourceArrowWriter):
    """Writes on executors; the commit runs once, with the messages of the winning attempts."""

    def __init__(self, source: _Source, overwrite: bool) -> None:
        self._source = source
        self._overwrite = overwrite
        table = source.table()
        current = table.current_snapshot()
        self._base = None if current is None else current.snapshot_id
        self._context = table.write_context()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _Written(pickle.dumps(ChunkWriter(self._context).write(iterator)))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        files = files_of([message.files for message in messages if isinstance(message, _Written)])
        table = self._source.table()
        branch = self._source.options.get("branch")
        options = {} if branch is None else {"branch": branch}
        with table.transaction() as transaction:
            if self._overwrite:
                transaction.overwrite_files(files, AlwaysTrue(), **options)
            else:
                transaction.append_files(files, **options)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete what the tasks wrote, if the table read again shows that no commit came since the write began.

        Spark calls this also when the commit's reply was lost. When anything was committed meanwhile, the files stay:
        orphan removal will know.
        """
        try:
            table = self._source.table()
            current = table.current_snapshot()
            if (None if current is None else current.snapshot_id) == self._base and not self._source.options.get(
                "branch"
            ):
                files = files_of([message.files for message in messages if isinstance(message, _Written)])
                table.io.delete_many([file.file_path for file in files])
        except IcefieldError:
            return  # an error here would hide the one that matters


def _scan(
    table: Table,
    options: Mapping[str, str],
    pinned: int | None = None,
    row_filter: BooleanExpression | None = None,
    columns: Sequence[str] = ("*",),
) -> TableScan:
    """The scan that a query's options ask for."""
    named = [key for key in ("snapshot-id", "ref", "as-of-timestamp") if options.get(key)]
    if len(named) > 1:
        raise InvalidArgument(f"give one of {' and '.join(named)}")
    given: Any = options.get("snapshot-id")
    snapshot = pinned if pinned is not None else _integer("snapshot-id", given)
    scan = table.scan(row_filter=row_filter or AlwaysTrue(), selected_fields=tuple(columns), snapshot_id=snapshot)
    if snapshot is None and options.get("ref"):
        scan = scan.use_ref(options["ref"])
    if snapshot is None and options.get("as-of-timestamp"):
        scan = scan.as_of(_integer("as-of-timestamp", options["as-of-timestamp"]) or 0)
    return scan


def _integer(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise InvalidArgument(f"the option '{name}' is a number, not '{text}'") from error
