"""A table of a Hive metastore as a new table of Iceberg: its files are added where they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from icefield import Catalog, FileIO, Table
from icefield.engine import NAME_MAPPING_DEFAULT
from icefield.errors import FileMissing, InvalidArgument, MissingPlugin, UnsupportedFeature
from icefield.schema import as_schema
from icefield.toolkit import map_ahead
from icefield.transaction import Transaction, property_strings
from icefield.types import IcebergType, parse_type

from icefield_import.checks import FILES_AT_ONCE
from icefield_import.folder_import import ImportedFolder, checked_types, created, refuse_existing
from icefield_import.folders import ImportedFile, is_hidden
from icefield_import.hive_schemas import HiveColumns
from icefield_import.schemas import check_ids, held_schemas, with_types

if TYPE_CHECKING:
    from icefield_hive import HivePartition, HiveStorage, HiveTable, HiveTables

_NO_TYPES: Final[Mapping[str, str | IcebergType]] = {}
_FORMATS: Final = {"MapredParquetInputFormat": "parquet", "OrcInputFormat": "orc", "AvroContainerInputFormat": "avro"}
"""The formats of tables, by the names of Hive's classes for input."""
_UNION: Final = re.compile(r"HIVE_UNION_SUBDIR_\d+")
"""A folder that Hive on Tez makes in the folder of a table or partition."""
_BY_POSITION: Final = ("parquet.column.index.access", "orc.force.positional.evolution")


@dataclass(frozen=True)
class _HiveFolder:
    """The folder of a partition, or of a table without partitions."""

    location: str
    file_format: str
    values: Mapping[str, str | None]


def import_hive(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    source: str,
    *,
    metastore: Catalog | str,
    accept_managed: bool = False,
    types: Mapping[str, str | IcebergType] = _NO_TYPES,
    properties: Mapping[str, Any] | None = None,
    dry_run: bool = False,
) -> ImportedFolder:
    """Create a table of the files of ``source``, a table ``database.table`` of Hive or Spark, in one commit.

    ``metastore`` is a catalog of type ``hive`` or the URI of a metastore, such as ``thrift://host:9083``. Files of
    Parquet, ORC and Avro stay where they are. Columns, their types and comments, and partitions come from the
    metastore, and partitions may have folders anywhere. Names are spelled as in the files. A ``timestamp`` has a zone
    if the files state one. Parquet's INT96 states none: there it has a zone in tables that Spark created. ``types``
    states other types of columns. The source stays a table of Hive and does not change.

    ``accept_managed`` imports a table whose files Hive deletes when the table is dropped. With ``dry_run`` nothing is
    made, and the result describes the table.

    Raises ``UnsupportedFeature`` for transactional and bucketed tables, views, text and other formats;
    ``InvalidArgument`` for a managed table and for tables of Iceberg and Delta Lake; ``NoSuchTable``, ``TableExists``;
    ``FileMissing`` for a table without files; ``MissingPlugin`` without icefield-hive.
    """
    refuse_existing(catalog, identifier)
    with _opened(metastore) as tables:
        table = tables.table(source)
        _refuse_kind(table)
        if not accept_managed:
            _refuse_managed(table)
        columns = table.schema()
        folders = list(_folders(table, tables.partitions(table)))
    io = catalog.io
    found = list(zip(folders, map_ahead(folders, lambda each: _files(io, table, each), FILES_AT_ONCE), strict=True))
    by_format: dict[str, list[ImportedFile]] = {}
    for folder, files in found:
        by_format.setdefault(folder.file_format, []).extend(files)
    by_format = {kind: files for kind, files in sorted(by_format.items()) if files}
    if not by_format:
        raise FileMissing(f"{table} has no data file in {table.storage.location} or in the folders of its partitions")
    held = [each for kind, files in by_format.items() for each in held_schemas(io, files, kind)]
    _refuse_partition_columns(table, held)
    fitted = HiveColumns(columns, held, silent_on_zones=table.is_of_spark and list(by_format) == ["parquet"])
    strings = _with_comment(property_strings(properties or {}), table)
    stated = {name: parse_type(each) if isinstance(each, str) else each for name, each in types.items()}
    schema = as_schema(fitted.schema, int(strings.get("format-version", 2)))
    schema = with_types(schema, checked_types(stated, [field.name for field in schema.fields]))
    spelled = {field.name.casefold(): field.name for field in schema.fields}
    partitioned = tuple(spelled[name.casefold()] for name in table.partition_columns)
    every = [each for files in by_format.values() for each in files]
    empty = tuple(folder.location for folder, files in found if not files)
    made = ImportedFolder(every, ", ".join(by_format), True, schema, partitioned, None, empty)
    if dry_run:
        return made

    def fill(transaction: Transaction[Table]) -> None:
        check_ids(held, transaction.shape.schema())
        if (mapping := fitted.mapping(transaction.shape.schema())) is not None:
            transaction.set_properties({NAME_MAPPING_DEFAULT.name: mapping.to_string()})
        for kind, files in by_format.items():
            values = {each.location: {spelled[name.casefold()]: v for name, v in each.values.items()} for each in files}
            transaction.add_files([each.location for each in files], partition_values=values, file_format=kind)

    return created(catalog, identifier, made, strings, fill)


def _opened(metastore: Catalog | str) -> HiveTables:
    if find_spec("icefield_hive") is None:
        raise MissingPlugin(
            'import_hive needs icefield-hive, which is not installed; pip install "icefield-import[hive]"'
        )
    opened: type[HiveTables] = import_module("icefield_hive").HiveTables
    if isinstance(metastore, str):
        return opened({"uri": metastore})
    if metastore.properties.get("type") != "hive":
        raise InvalidArgument(f"catalog '{metastore.name}' has no tables of Hive: its type is not hive")
    return opened(metastore.properties, metastore.name)


def _refuse_kind(table: HiveTable) -> None:
    """Refuse a table that is more than its files: of another table format, transactional, bucketed, or a view."""
    given = {name.lower(): value for name, value in table.parameters.items()}
    handler, classes = given.get("storage_handler", ""), table.storage.input_format
    if "VIEW" in table.kind:
        raise UnsupportedFeature(f"{table} is a view, which has no files: append the rows of its query to a table")
    if given.get("table_type", "").upper() == "ICEBERG" or table.provider == "iceberg" or ".iceberg." in handler:
        place = given.get("metadata_location", "its metadata file")
        raise InvalidArgument(f"{table} is a table of Iceberg already: register_table takes {place} into a catalog")
    if table.provider == "delta" or ".delta." in handler or ".delta." in classes:
        place = table.storage.parameters.get("path", table.storage.location)
        raise InvalidArgument(f"{table} is a table of Delta Lake: use import_delta for {place}", location=place)
    if table.provider == "hudi" or "hudi" in classes or "hoodie" in classes:
        raise UnsupportedFeature(f"{table} is a table of Hudi, whose files alone do not show its rows: append its rows")
    if given.get("transactional", "").lower() == "true":
        raise UnsupportedFeature(
            f"{table} is transactional: its files hold changes and deleted rows; copy its rows into a plain table of "
            "Hive first, or append them"
        )
    if handler:
        raise UnsupportedFeature(f"{table} is stored by {handler}, and has no files of its own: append its rows")
    if table.bucket_columns:
        raise UnsupportedFeature(
            f"{table} is bucketed by {', '.join(table.bucket_columns)}, by a hash that Iceberg does not have; copy its "
            "rows into a plain table of Hive first, or append them"
        )
    for name in _BY_POSITION:
        if "true" in (given.get(name, "").lower(), table.storage.parameters.get(name, "").lower()):
            raise UnsupportedFeature(f"{table} has {name}=true: its files are read by position, and Iceberg's by name")


def _refuse_managed(table: HiveTable) -> None:
    purged = table.parameters.get("external.table.purge", "").lower() == "true"
    if table.kind == "MANAGED_TABLE" or purged:
        why = "is external with external.table.purge=true" if purged else "is a managed table"
        raise InvalidArgument(
            f"{table} {why}: Hive owns its files, and DROP TABLE or INSERT OVERWRITE deletes files that the new table "
            "needs; make it external without purging first, or pass accept_managed=True (--accept-managed)"
        )


def _folders(table: HiveTable, partitions: Iterable[HivePartition]) -> Iterator[_HiveFolder]:
    columns = table.partition_columns
    if not columns:
        place = table.storage.parameters.get("path") if table.provider is not None else None
        yield _HiveFolder(place or table.storage.location, _format_of(table, table.storage), {})
        return
    is_empty = True
    for each in partitions:
        is_empty = False
        values = dict(zip(columns, each.values, strict=True))
        yield _HiveFolder(each.storage.location, _format_of(table, each.storage), values)
    if is_empty:
        raise FileMissing(
            f"{table} is partitioned by {', '.join(columns)} and has no partition in the metastore: MSCK REPAIR TABLE "
            "adds the partitions of its folders"
        )


def _format_of(table: HiveTable, storage: HiveStorage) -> str:
    found = table.provider or _FORMATS.get(storage.input_format.rpartition(".")[2], "")
    if found not in _FORMATS.values():
        raise UnsupportedFeature(
            f"{storage.location} of {table} has files of {table.provider or storage.input_format or 'no format'}, and "
            "only Parquet, ORC and Avro stay where they are: copy the table as Parquet in Hive or Spark first; "
            "import_folder writes the rows of CSV with names in the first line and of JSON lines"
        )
    return found


def _files(io: FileIO, table: HiveTable, folder: _HiveFolder) -> Sequence[ImportedFile]:
    """The files directly in a folder. Raises ``UnsupportedFeature`` for files in subfolders."""
    found = []
    root = folder.location.rstrip("/")
    for info in io.list_files(root):
        *inside, name = info.location.removeprefix(f"{root}/").split("/")
        if is_hidden([*inside, name]) or not info.size:
            continue
        if other := [each for each in inside if not _UNION.fullmatch(each)]:
            raise UnsupportedFeature(
                f"{table} has the file {info.location} in the subfolder '{other[0]}' of {root}: some engines read it "
                "and some do not; move it up, or add its folder as a partition",
                location=info.location,
            )
        found.append(ImportedFile(info.location, info.size, folder.values))
    return sorted(found, key=lambda each: each.location)


def _refuse_partition_columns(table: HiveTable, held: Iterable[tuple[str, pa.Schema]]) -> None:
    """Refuse a file with a partition column: Hive reads the partition's value, and readers of Iceberg the file's."""
    columns = {name.casefold() for name in table.partition_columns}
    for location, schema in held:
        if twice := [name for name in schema.names if name.casefold() in columns]:
            raise UnsupportedFeature(
                f"{location} holds the column '{twice[0]}', which {table} is partitioned by: Hive ignores its values, "
                "and Iceberg reads them; use import_folder, which takes them from the files",
                location=location,
            )


def _with_comment(properties: dict[str, str], table: HiveTable) -> dict[str, str]:
    comment = table.parameters.get("comment")
    return {"comment": comment, **properties} if comment else properties
