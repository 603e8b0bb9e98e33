"""The schema of a table to which files of several schemas are added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
from icefield import FileIO, Schema
from icefield.engine import SchemaUpdate, carries_ids
from icefield.errors import IcefieldError, InvalidFile, InvalidSchema
from icefield.schema import as_schema
from icefield.toolkit import map_ahead
from icefield.types import IcebergType, NestedField

from icefield_import.checks import FILES_AT_ONCE
from icefield_import.folders import ImportedFile
from icefield_import.text_files import with_strings


def held_schemas(io: FileIO, files: Iterable[ImportedFile], file_format: str) -> Iterator[tuple[str, pa.Schema]]:
    """The different schemas of files, each with the location of the first file that has it."""
    kind = io.file_format(file_format)

    def schema_of(file: ImportedFile) -> tuple[str, pa.Schema]:
        with kind.open_reader(io.open_input(file.location), file.location, size=file.size) as reader:
            return file.location, reader.schema

    seen: list[pa.Schema] = []
    for location, schema in map_ahead(files, schema_of, FILES_AT_ONCE):
        if not any(schema.equals(each, check_metadata=True) for each in seen):
            seen.append(schema)
            yield location, schema


def united_schema(schemas: Iterable[tuple[str, pa.Schema]], format_version: int) -> Schema:
    """The union of files' schemas by name, with optional columns; types are promoted as Iceberg allows.

    Below format version 3, which has no type without values, a column that is null in all files is a string. Raises
    ``InvalidSchema`` for types that differ, and for a type that Iceberg lacks, with the column and the file.
    """
    found = Schema()
    leftover: dict[str, tuple[str, pa.Field]] = {}
    for location, held in schemas:
        typed = held if format_version > 2 else pa.schema(_typed(held))
        leftover.update({field.name: (location, field) for field in held if field.name not in typed.names})
        found = _united(found, location, typed, format_version)
    names = {field.name for field in found.fields}
    for location, field in leftover.values():
        if field.name not in names:
            text = field.with_type(with_strings(field.type, pa.types.is_null))
            found = _united(found, location, pa.schema([text]), format_version)
    return found


def _united(found: Schema, location: str, held: pa.Schema, format_version: int) -> Schema:
    try:
        given = as_schema(pa.schema([field.with_nullable(True) for field in held]), format_version)
        update = SchemaUpdate(found, last_column_id=found.highest_field_id, format_version=format_version)
        return update.union_by_name(given).result()
    except IcefieldError as error:
        raise InvalidSchema(
            f"the columns of {location} do not go with those of the files before it: {error}; import it as a table "
            "of its own, or append its rows",
            location=location,
        ) from error


def _typed(fields: Iterable[pa.Field]) -> list[pa.Field]:
    """The fields that may hold values, with only such fields in structs."""
    found = []
    for field in fields:
        kind = field.type
        if pa.types.is_struct(kind):
            children = _typed(kind)
            field = field.with_type(pa.struct(children) if children or not kind.num_fields else pa.null())
        elif pa.types.is_list(kind):
            element = _typed([kind.value_field])
            field = field.with_type(pa.list_(element[0]) if element else pa.null())
        if not pa.types.is_null(field.type):
            found.append(field)
    return found


def check_ids(schemas: Iterable[tuple[str, pa.Schema]], table: Schema) -> None:
    """Refuse a file with field ids that the new table gives to other columns."""
    for location, held in schemas:
        if not carries_ids(held):
            continue
        given = as_schema(held)
        for id_ in given.field_ids:
            name = given.find_column_name(id_)
            if table.find_column_name(id_) != name:
                raise InvalidFile(
                    f"{location} has the field id {id_} in column '{name}', and the new table has another column of "
                    "this id: it is a file of a table of Iceberg; register that table, or append the file's rows",
                    location=location,
                    field_id=id_,
                )


def with_types(schema: Schema, types: Mapping[str, IcebergType]) -> Schema:
    """The schema with other types of columns, and with columns that it lacks at its end."""
    fields = [
        NestedField(field.field_id, field.name, types.get(field.name, field.field_type), field.required, field.doc)
        for field in schema.fields
    ]
    there = {field.name for field in fields}
    next_id = schema.highest_field_id
    for name, kind in types.items():
        if name not in there:
            next_id += 1
            fields.append(NestedField(next_id, name, kind))
    return Schema(*fields)
