"""Checks that columns of a foreign file without field ids are read as the table's columns of the same names.

The ids come from the table's name mapping, each time that the file is read. If a name passes from one column to
another, the mapping keeps it for the first column, so that older files keep their meaning. In a new file such a name is
ambiguous: the file would be read with nulls, or with the values of another column, so it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import pyarrow as pa
from icefield.errors import InvalidFile
from icefield.metadata import TableMetadata
from icefield.schema import NameMapping, Schema
from icefield.toolkit import child_fields, field_id
from icefield.types import NestedField, StructType

_Names = tuple[str, ...]


def check_names(
    metadata: TableMetadata, mapping: NameMapping | None, file_schema: pa.Schema, given: pa.Schema, location: str
) -> None:
    """Raise ``InvalidFile`` for a column without id that would be read as another column than its namesake.

    ``file_schema`` is the schema of the file, ``given`` the same with the ids that the mapping gives. ``mapping`` is
    None for a file with ids, since no mapping applies to it. A column may be ignored where the mapping says so, and
    where the table has no column of its name. It is refused if several columns had this name, or if a column's name
    differs only in case. A file that has none of the table's columns is refused, too.
    """
    _Check(metadata, mapping, location).fields(list(file_schema), list(given), metadata.schema().fields, ())


class _Check:
    def __init__(self, metadata: TableMetadata, mapping: NameMapping | None, location: str) -> None:
        self._schema = metadata.schema()
        self._history: Sequence[Schema] = tuple(metadata.schemas)
        self._mapping = mapping
        self._location = location

    def fields(
        self, held: Sequence[pa.Field], given: Sequence[pa.Field], columns: Sequence[NestedField], path: _Names
    ) -> None:
        """Check the fields of a struct: in the file (``held``), with the given ids (``given``), and in the table."""
        by_name = {column.name: column for column in columns}
        by_id = {field_id(field) for field in given}
        for raw, field in zip(held, given, strict=True):
            place = (*path, raw.name)
            column = by_name.get(raw.name)
            if field_id(raw) is None:
                self._check(place, field_id(field), column, by_id)
                if field_id(field) is None and column is None:
                    self._refuse_other_case(place, [each.name for each in columns if each.field_id not in by_id])
            if column is not None:
                self._inside(raw, field, column, place)
        # In a file with field ids, a struct may have only fields that the table had before.
        is_named = not path or self._mapping is not None
        if is_named and held and columns and by_id.isdisjoint(column.field_id for column in columns):
            what = f"field of '{'.'.join(path)}'" if path else "column"
            raise InvalidFile(
                f"{self._location} has no {what} of the table, and would be read with nulls: it has "
                f"{_listed(field.name for field in held)}, the table {_listed(column.name for column in columns)}",
                location=self._location,
            )

    def _check(self, place: _Names, read_as: int | None, column: NestedField | None, by_id: set[int | None]) -> None:
        if column is None:
            if read_as in self._schema.id_to_field and len(self._meanings(place)) > 1:
                raise self._refused(place, read_as)
        elif read_as != column.field_id and not self._intended(place, column, by_id):
            raise self._refused(place, read_as)

    def _refuse_other_case(self, place: _Names, unread: Sequence[str]) -> None:
        """Refuse a column that differs only in case from a column of the table that the file lacks."""
        if self._mapping is not None and self._mapping.find(*place) is not None:
            return
        for name in unread:
            if name.casefold() == place[-1].casefold():
                raise InvalidFile(
                    f"{self._location}: column '{'.'.join(place)}' is '{'.'.join((*place[:-1], name))}' in the table: "
                    "names are compared exactly, and it would be read with nulls; rename it and append the file's rows "
                    "instead, or add the name to the table's name mapping",
                    location=self._location,
                )

    def _intended(self, place: _Names, column: NestedField, by_id: set[int | None]) -> bool:
        """Whether a hand-written mapping gives the name no id, or gives the column another name."""
        mapped = self._mapping.find(*place) if self._mapping is not None else None
        if mapped is not None and mapped.field_id in (None, column.field_id):
            return mapped.field_id is None  # else two columns of the file are mapped to this one
        return column.field_id in by_id and len(self._meanings(place)) < 2

    def _meanings(self, place: _Names) -> set[int]:
        """The ids of all columns that ever had this name."""
        found = [schema.find_field(place).field_id for schema in self._history if schema.has_field(place)]
        return set(found)

    def _inside(self, raw: pa.Field, given: pa.Field, column: NestedField, place: _Names) -> None:
        """Check nested fields: a list's element, a map's key and value are matched by position."""
        held, read = child_fields(raw.type), child_fields(given.type)
        columns = column.field_type.children
        if isinstance(column.field_type, StructType):
            if pa.types.is_struct(raw.type):
                self.fields(held, read, columns, place)
        elif len(held) == len(columns):
            for one, other, inner in zip(held, read, columns, strict=True):
                self._inside(one, other, inner, (*place, inner.name))

    def _refused(self, place: _Names, read_as: int | None) -> InvalidFile:
        name, other = ".".join(place), None if read_as is None else self._schema.find_column_name(read_as)
        if self._mapping is None:
            why = "has no field id while others of the file have one, and would be read as none that the table has"
        elif read_as is None:
            why = "has no field id, and by the table's name mapping would be read as none that the table has"
        else:
            meaning = "one that was deleted" if other is None else f"column {read_as}, which is called '{other}' now"
            why = f"has no field id, and by the table's name mapping would be read as {meaning}"
        return InvalidFile(
            f"{self._location}: column '{name}' {why}; write the file's rows with append instead, or give all its "
            "columns field ids",
            location=self._location,
            field_id=read_as,
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in islice(names, 10))
