"""A folder of files as a new table: files of tables' formats stay where they are, and text is written anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Final

import pyarrow as pa
from icefield import Catalog, FileIO, Schema, Table
from icefield.engine import constant_array, to_internal
from icefield.errors import InvalidArgument, InvalidSchema, TableExists
from icefield.schema import as_schema
from icefield.storage import given_location
from icefield.toolkit import to_arrow_type
from icefield.transaction import Transaction, property_strings
from icefield.types import IcebergType, PrimitiveType, parse_type

from icefield_import.folders import TEXT_FORMATS, ImportedFile, common_format, files_in, has_delta_log, partition_type
from icefield_import.schemas import check_ids, held_schemas, united_schema, with_types
from icefield_import.text_files import CsvFiles, JsonFiles, TextFormat, united, with_strings

_NO_TYPES: Final[Mapping[str, str | IcebergType]] = {}


@dataclass(frozen=True)
class ImportedFolder:
    """The description of an import: the files, and the table that they become."""

    files: Sequence[ImportedFile]
    file_format: str
    is_in_place: bool
    """Whether the files stay where they are, as data files of the table; the rows of text are written anew."""

    schema: Schema
    partition_columns: tuple[str, ...]
    """The columns of the identity partition fields."""

    table: Table | None = None
    """The new table; None for a dry run."""

    empty_folders: tuple[str, ...] = ()
    """The folders of a Hive table's partitions that hold no file, and so no row."""

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(each.size for each in self.files)


def import_folder(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    location: str | PathLike[str],
    *,
    file_format: str | None = None,
    types: Mapping[str, str | IcebergType] = _NO_TYPES,
    delimiter: str | None = None,
    null_values: Sequence[str] = ("",),
    properties: Mapping[str, Any] | None = None,
    dry_run: bool = False,
) -> ImportedFolder:
    """Create a table of the files below a folder, in one commit.

    Files of Parquet, ORC and Avro stay where they are, and are data files of the table. Rows of CSV (whose first line
    has the names of columns) and of JSON lines are written into the table, in bounded memory; text may be compressed.
    The columns are those of all files, by name. Subfolders such as ``day=2024-01-31`` are identity partition fields;
    their values are integers, dates or else strings. ``types`` states types of columns, such as ``decimal(9,2)``,
    ``delimiter`` the separator of CSV (a comma, or a tab in ``.tsv``), ``null_values`` the unquoted strings that stand
    for null in it. Files and folders whose names begin with ``_`` or ``.`` are left out.

    With ``dry_run`` nothing is made, and the result describes the table. Raises ``TableExists``, ``FileMissing`` for a
    folder without files, ``InvalidArgument`` for files of several formats, ``InvalidSchema`` for types of a column that
    no type unites, ``InvalidFile``.
    """
    refuse_existing(catalog, identifier)
    io, location = catalog.io, given_location(location)
    if has_delta_log(io, location):
        raise InvalidArgument(
            f"{location} is a table of Delta Lake, whose log says which files are its own: use import_delta",
            location=location,
        )
    files = files_in(io, location)
    kind = common_format(io, files, file_format)
    stated = {name: parse_type(each) if isinstance(each, str) else each for name, each in types.items()}
    columns = tuple(files[0].values)
    folder_types = {name: stated.get(name) or partition_type(each.values[name] for each in files) for name in columns}
    strings = property_strings(properties or {})
    version = int(strings.get("format-version", 2))
    if kind in TEXT_FORMATS.values():
        separator = delimiter or ("\t" if kind == "tsv" else ",")
        text: TextFormat = JsonFiles(_as_text(stated)) if kind == "json" else CsvFiles(separator, null_values)
        held = _text_schema(io, files, text, stated)
        schema = _complete(as_schema(held, version), stated, folder_types)

        def fill(transaction: Transaction[Table]) -> None:
            transaction.append(_rows(io, files, text, held, folder_types))
    else:
        schemas = list(held_schemas(io, files, kind))
        schema = _complete(united_schema(schemas, version), stated, folder_types)

        def fill(transaction: Transaction[Table]) -> None:
            check_ids(schemas, transaction.shape.schema())
            transaction.add_files([each.location for each in files], file_format=kind, hive_partitioning=True)

    made = ImportedFolder(files, kind, kind not in TEXT_FORMATS.values(), schema, columns)
    return made if dry_run else created(catalog, identifier, made, strings, fill)


def refuse_existing(catalog: Catalog, identifier: str | tuple[str, ...]) -> None:
    """Raise ``TableExists`` if the name is taken, before any file is read."""
    if catalog.table_exists(identifier):
        name = identifier if isinstance(identifier, str) else ".".join(identifier)
        raise TableExists(
            f"table {name} exists already; add_files(..., hive_partitioning=True) and append add to it", table=name
        )


def created(
    catalog: Catalog,
    identifier: str | tuple[str, ...],
    made: ImportedFolder,
    properties: Mapping[str, str],
    fill: Callable[[Transaction[Table]], None],
) -> ImportedFolder:
    """Create the table of an import, and fill it in the same commit."""
    with catalog.create_table_transaction(
        identifier, made.schema, partition_spec=list(made.partition_columns) or None, properties=properties
    ) as transaction:
        fill(transaction)
        table = transaction.commit_transaction()
    return replace(made, schema=table.schema(), table=table)


def checked_types(stated: Mapping[str, IcebergType], columns: Sequence[str]) -> Mapping[str, IcebergType]:
    """The stated types of columns. Raises ``InvalidArgument`` for a column that is not there."""
    if unknown := stated.keys() - set(columns):
        raise InvalidArgument(
            f"types names column '{min(unknown)}', which no file has: there are {', '.join(map(repr, columns))}"
        )
    return stated


def _complete(schema: Schema, stated: Mapping[str, IcebergType], folder_types: Mapping[str, IcebergType]) -> Schema:
    """The schema of the table: the files' columns with stated types, and the columns of folders that files lack."""
    there = [field.name for field in schema.fields]
    checked_types(stated, (*there, *folder_types))
    lacking = {name: kind for name, kind in folder_types.items() if name not in there}
    folded: dict[str, str] = {}
    for name in (*there, *lacking):
        if (other := folded.setdefault(name.casefold(), name)) != name:
            raise InvalidSchema(
                f"columns '{other}' and '{name}' differ in case only, and would be two columns with nulls: rename "
                "one in its files"
            )
    return with_types(schema, {**{name: kind for name, kind in stated.items() if name in there}, **lacking})


def _text_schema(
    io: FileIO, files: Sequence[ImportedFile], text: TextFormat, stated: Mapping[str, IcebergType]
) -> pa.Schema:
    """The columns of all files of text, with the stated types."""
    found: pa.Schema | None = None
    for file in files:
        seen = text.schema(io, file.location)
        seen = pa.schema([_with_type(field, stated) for field in seen])
        try:
            found = seen if found is None else united([found, seen])
        except pa.ArrowException as error:
            raise InvalidSchema(
                f"the columns of {file.location} do not go with those of the files before it: {error}; state the type "
                "of the column by types, such as types={'name': 'string'}",
                location=file.location,
            ) from error
    assert found is not None, "a folder without files is refused"
    return pa.schema([field.with_type(with_strings(field.type, pa.types.is_null)) for field in found])


def _as_text(stated: Mapping[str, IcebergType]) -> list[str]:
    """The columns of stated types that Arrow casts from text."""
    return [name for name, kind in stated.items() if isinstance(kind, PrimitiveType)]


def _with_type(field: pa.Field, stated: Mapping[str, IcebergType]) -> pa.Field:
    return field.with_type(to_arrow_type(stated[field.name])) if field.name in stated else field


def _rows(
    io: FileIO,
    files: Sequence[ImportedFile],
    text: TextFormat,
    held: pa.Schema,
    folder_types: Mapping[str, IcebergType],
) -> Iterator[pa.RecordBatch]:
    """The rows of files of text, with the values in the names of their folders."""
    for file in files:
        constants = [
            (name, kind, to_internal(kind, file.values[name]))
            for name, kind in folder_types.items()
            if name not in held.names
        ]
        for batch in text.read(io, file.location, held):
            for name, kind, value in constants:
                batch = batch.append_column(name, constant_array(kind, value, batch.num_rows))
            yield batch
