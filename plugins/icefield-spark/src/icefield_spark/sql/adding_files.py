"""``add_files`` and ``snapshot``: files of folders and of Spark's own tables, taken into tables where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from icefield import Schema, Table
from icefield.errors import InvalidArgument, NoSuchTable, TableExists, UnsupportedFeature
from icefield_import import folder_values
from pyspark.sql import SparkSession
from pyspark.sql import types as spark

from icefield_spark.quoting import quoted
from icefield_spark.sql.context import Rows, StatementContext
from icefield_spark.sql.defaults import values_of
from icefield_spark.sql.parsing import Cursor, Statement
from icefield_spark.types import from_spark_schema, to_spark_type
from icefield_spark.writing import is_case_sensitive

Values = Mapping[str, str | None]
"""The partition values in the names of a file's folders: strings by the names of columns."""

_FORMATS = ("parquet", "orc", "avro")
_SHORT = {"parquet": ("parq", "pq")}
"""Other suffixes of a format; Impala writes ``.parq``."""


@dataclass(frozen=True)
class _FolderFiles:
    """Files, each with the partition values in the names of its folders."""

    place: str
    found: Mapping[str, Values]
    file_format: str | None = None
    """The format of all of them, where that was stated."""

    def where(self, wanted: Mapping[str, str]) -> _FolderFiles:
        """The files in partitions with certain values."""
        fits = {each for each, values in self.found.items() if wanted.items() <= values.items()}
        return replace(self, found={each: values for each, values in self.found.items() if each in fits})

    def stated(self, context: StatementContext, schema: Schema) -> dict[str, dict[str, Any]]:
        """The partition values of the folders, as values of the table's columns."""
        sensitive = is_case_sensitive(context.spark)
        columns = {name if sensitive else name.lower(): name for name in (field.name for field in schema.fields)}
        strings = {
            each: {
                columns[key]: value for name, value in values.items() if (key := _folded(name, sensitive)) in columns
            }
            for each, values in self.found.items()
        }
        pairs = {pair for values in strings.values() for pair in values.items()}
        made = _typed(context.spark, schema, sorted(pairs, key=repr))
        return {each: {pair[0]: made[pair] for pair in values.items()} for each, values in strings.items()}


def add_files(context: StatementContext, table: Table, given: Mapping[str, Any]) -> Rows:
    """Add files to an existing table."""
    files = _source(context, given["source_table"]).where(given.get("partition_filter", {}))
    if not files.found:
        raise InvalidArgument(f"no file is in {files.place}, or none in the partitions that are asked for")
    table.add_files(
        files.found,
        check_duplicate_files=given.get("check_duplicate_files", True),
        partition_values=files.stated(context, table.schema()),
        file_format=files.file_format,
    )
    snapshot = table.current_snapshot()
    partitions = 0 if snapshot is None else int(snapshot.summary.get("changed-partition-count", 0))
    return [[len(files.found), partitions]]


def snapshot(context: StatementContext, given: Mapping[str, Any]) -> Rows:
    """Create a table from the files of a table of Spark, which stays unchanged and keeps its files."""
    source = name_of(given["source_table"])
    _check_of_spark(context, source)
    name = context.names.local(name_of(given["table"]))
    if context.catalog.table_exists(name):
        raise TableExists(f"table {'.'.join(name)} exists already in catalog '{context.catalog.name}'", table=name)
    schema = from_spark_schema(context.spark.table(quoted(*source)).schema, optional=True)
    files = _files_of_spark(context.spark, source)
    properties = {**given.get("properties", {}), "gc.enabled": "false", "snapshot": "true"}
    options = {"location": given["location"]} if "location" in given else {}
    with context.catalog.create_table_transaction(
        name,
        schema,
        partition_spec=_partition_columns(context.spark, source),
        properties=properties,
        **options,
    ) as transaction:
        if files.found:
            stated = files.stated(context, transaction.shape.schema())
            transaction.add_files(files.found, partition_values=stated)
    return [[len(files.found)]]


def name_of(string: str) -> tuple[str, ...]:
    """The name in an argument, by its parts."""
    cursor = Cursor(Statement(string))
    parts = cursor.names("the name of a table")
    cursor.expect_end()
    return parts


def _source(context: StatementContext, string: str) -> _FolderFiles:
    parts = name_of(string)
    if len(parts) == 2 and parts[0].lower() in _FORMATS:
        return _files_in(context, parts[0].lower(), parts[1])
    _check_of_spark(context, parts)
    return _files_of_spark(context.spark, parts)


def _check_of_spark(context: StatementContext, parts: tuple[str, ...]) -> None:
    if context.names.find(parts) is not None:
        raise UnsupportedFeature(
            f"{'.'.join(parts)} is a table of Icefield, whose files stay its own: write its rows with INSERT"
        )
    if not context.spark.catalog.tableExists(quoted(*parts)):
        raise NoSuchTable(f"Spark has no table {'.'.join(parts)}", table=parts)


def _files_in(context: StatementContext, kind: str, folder: str) -> _FolderFiles:
    """The files of a folder and its subfolders, except files that Spark and Hive do not take for data."""
    root = folder.rstrip("/")
    found = {}
    for each in context.catalog.io.list_files(root):
        *folders, name = each.location.partition(f"{root}/")[2].split("/")
        hidden = any(part.startswith((".", "_")) and "=" not in part for part in (*folders, name))
        if not hidden and _may_be(kind, name):
            found[each.location] = folder_values(folders)
    return _FolderFiles(folder, found, kind)


def _may_be(kind: str, name: str) -> bool:
    """Whether a file may be of a format: it has a suffix of the format, or no suffix, like the files of Hive."""
    _, dot, suffix = name.lower().rpartition(".")
    return suffix == kind or not dot or suffix in _SHORT.get(kind, ())


def _files_of_spark(session: SparkSession, parts: tuple[str, ...]) -> _FolderFiles:
    """The files of a table of Spark's own."""
    columns = _partition_columns(session, parts)
    found: dict[str, Values] = {}
    for uri in session.table(quoted(*parts)).inputFiles():
        location = unquote(uri)
        values = {name.lower(): value for name, value in folder_values(location.split("/")[:-1]).items()}
        if any(name.lower() not in values for name in columns):
            raise UnsupportedFeature(
                f"the folder of {location} does not name its partition as {'/'.join(f'{name}=…' for name in columns)}: "
                "read the rows of such a table, and write them with INSERT",
                location=location,
            )
        found[location] = {name: values[name.lower()] for name in columns}
    return _FolderFiles(".".join(parts), found)


def _partition_columns(session: SparkSession, parts: tuple[str, ...]) -> list[str]:
    return [column.name for column in session.catalog.listColumns(quoted(*parts)) if column.isPartition]


def _typed(
    session: SparkSession, schema: Schema, pairs: Sequence[tuple[str, str | None]]
) -> dict[tuple[str, str | None], Any]:
    """Strings as the values of their columns, by Spark's rules."""
    kinds: list[spark.DataType] = [to_spark_type(schema.find_type((name,))) for name, _ in pairs]
    values = values_of(session, [value for _, value in pairs], kinds)
    for (name, string), value in zip(pairs, values, strict=True):
        if string is not None and value is None:
            raise InvalidArgument(f"'{string:.100}', from the name of a folder, is no value of column '{name}'")
    return dict(zip(pairs, values, strict=True))


def _folded(name: str, sensitive: bool) -> str:
    return name if sensitive else name.lower()
