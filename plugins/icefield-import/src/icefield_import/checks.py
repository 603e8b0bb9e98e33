"""Checks of a data file that another program wrote, before it is added to a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
from icefield import FileIO, Schema
from icefield.abc import FileFormat
from icefield.engine import LINEAGE_IDS, check_nulls, has_required
from icefield.errors import IcefieldError, InvalidArgument, InvalidFile, MissingPlugin
from icefield.toolkit import Metrics, child_fields, field_id
from icefield.types import DELETE_FILE_PATH, DELETE_FILE_POS, NestedField

FILES_AT_ONCE: Final = 8
"""The files that are looked at together: each takes several requests of a store."""

_POSITION_DELETES: Final = {DELETE_FILE_PATH.field_id, DELETE_FILE_POS.field_id}


def format_of(io: FileIO, location: str, stated: str | None) -> FileFormat:
    """The format of a file: the stated format, else by its suffix, else by its first bytes.

    Raises ``MissingPlugin`` for a stated format that nothing provides, ``InvalidArgument`` for an unknown format.
    """
    if stated is not None:
        return io.file_format(stated.lower())
    try:
        return io.file_format(location.rpartition(".")[2].lower())
    except MissingPlugin as error:
        found = _by_first_bytes(io, location)
        if found is None:
            raise InvalidArgument(
                f"cannot find the format of {location} by its name or its first bytes: {error}; state it by "
                "file_format",
                location=location,
            ) from error
        return found


def _by_first_bytes(io: FileIO, location: str) -> FileFormat | None:
    formats: list[FileFormat] = []
    for name in io.plugins.names("file-formats"):
        try:
            formats.append(io.file_format(name))
        except IcefieldError:  # no file is known to be of the format of a plugin that cannot be loaded
            continue
    with io.open_input(location) as source:
        start = source.read_at(0, max((len(each.magic) for each in formats), default=0))
    found = [each for each in formats if each.magic and start.startswith(each.magic)]
    return max(found, key=lambda each: len(each.magic), default=None)


def refuse_deletes(schema: pa.Schema, location: str) -> None:
    """Refuse a position delete file: read as data, it would give rows without values."""
    if {field_id(field) for field in schema} >= _POSITION_DELETES:
        raise InvalidArgument(
            f"{location} is a position delete file, whose rows are not a table's: add only data files",
            location=location,
        )


def refuse_row_ids(schema: pa.Schema, metrics: Metrics, location: str) -> None:
    """Refuse a file with row ids: readers take these ids, and the table gives the same ids to other rows."""
    for field in schema:
        id_ = field_id(field)
        if id_ in LINEAGE_IDS and metrics.record_count and metrics.null_value_counts.get(id_) != metrics.record_count:
            raise InvalidArgument(
                f"{location} states the row lineage of its rows in a column '{field.name}', and the table may have "
                "given the same row ids to others; write its rows with append instead",
                location=location,
                field_id=id_,
            )


def refuse_folders(schema: Schema, there: Collection[int | None], location: str) -> None:
    """Refuse a file in a folder that names a value of a column that it lacks: the column would be read as null.

    ``there``: the ids of the columns that the file has, or that have a stated value.
    """
    columns = {field.name.casefold(): field for field in schema.fields if field.field_id not in there}
    for folder in location.split("/")[:-1]:
        name, sign, value = folder.partition("=")
        column = columns.get(unquote(name).casefold()) if sign else None
        if column is not None:
            raise InvalidArgument(
                f"{location} has no column '{column.name}', which its folder '{folder}' names, and would be read with "
                "nulls: pass hive_partitioning=True to take the value from the name, or state it by partition_values="
                f"{{location: {{'{column.name}': ...}}}} for '{value}'",
                location=location,
                field_id=column.field_id,
            )


def refuse_nulls(
    schema: Schema,
    file_schema: pa.Schema,
    metrics: Metrics,
    location: str,
    read: Callable[[Schema], Iterator[pa.RecordBatch]],
) -> None:
    """Refuse a file that holds nulls in required columns, at any depth.

    The file's own schema and counts are trusted if they prove that there are none; other columns are read.
    """
    held = {field_id(field): field for field in file_schema}
    doubtful = [
        column.field_id
        for column in schema.fields
        if column.field_id in held and not _holds_no_nulls(column, held[column.field_id], metrics)
    ]
    if not doubtful:
        return
    part = schema.select_ids(doubtful)
    for batch in read(part):
        for column, values in zip(part.fields, batch.columns, strict=True):
            try:
                check_nulls(column, values)
            except InvalidArgument as error:
                raise InvalidFile(
                    f"{location}: column '{error.data['column']}' is required in the table and holds a null; make it "
                    "optional, or fill it and write the rows with append",
                    location=location,
                    field_id=error.data["field_id"],
                ) from None


def _holds_no_nulls(column: NestedField, held: pa.Field, metrics: Metrics) -> bool:
    """Whether no required field of a column can be null."""
    if not (column.required or has_required(column.field_type)) or _allows_none(column, held):
        return True
    id_ = column.field_id
    counted = metrics.value_counts.get(id_) == metrics.record_count and metrics.null_value_counts.get(id_) == 0
    return column.field_type.is_primitive and counted


def _allows_none(column: NestedField, held: pa.Field) -> bool:
    """Whether the file's own schema allows no null in any required field."""
    if column.required and held.nullable:
        return False
    inside = {field_id(field): field for field in child_fields(held.type)}
    return all(
        child.field_id not in inside or _allows_none(child, inside[child.field_id])
        for child in column.field_type.children
    )
