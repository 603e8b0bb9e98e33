"""The columns of a table of Hive, with names and time zones as in its files.

Hive compares names without case and stores them in lower case; tables of Iceberg compare them exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from icefield import Schema
from icefield.errors import InvalidSchema
from icefield.schema import MappedField, NameMapping, create_name_mapping
from icefield.toolkit import child_fields

_UTC = pa.timestamp("us", "UTC")
_Path = tuple[str, ...]


class HiveColumns:
    """The columns of a table of Hive, fitted to the schemas of its files."""

    def __init__(self, columns: pa.Schema, held: Iterable[tuple[str, pa.Schema]], *, silent_on_zones: bool) -> None:
        """``held``: schemas of files, with the location of a file that has each.

        ``silent_on_zones``: a timestamp without a zone in a file may be Parquet's INT96, which is silent on zones, so
        that the column's own type holds. Raises ``InvalidSchema`` for a file with two columns whose names differ only
        in case.
        """
        self._silent_on_zones = silent_on_zones
        self._spellings: dict[_Path, tuple[str, ...]] = {}
        held = list(held)
        for location, schema in held:
            _refuse_twins(list(schema), location)
        self.schema = pa.schema(self._fields(list(columns), [list(schema) for _, schema in held], ()))
        """The columns, optional at any depth. A name is spelled as in the files that have the column."""

    def mapping(self, schema: Schema) -> NameMapping | None:
        """The name mapping of the table's schema with all spellings; None where each name has one."""
        if not self._spellings:
            return None
        return NameMapping(self._spelled(create_name_mapping(schema).fields, ()))

    def _spelled(self, fields: Iterable[MappedField], path: _Path) -> list[MappedField]:
        found = []
        for each in fields:
            place = (*path, each.names[0])
            names = dict.fromkeys([*each.names, *self._spellings.get(place, ())])
            found.append(MappedField(tuple(names), each.field_id, tuple(self._spelled(each.fields, place))))
        return found

    def _fields(self, fields: Sequence[pa.Field], held: Sequence[Sequence[pa.Field]], path: _Path) -> list[pa.Field]:
        found = []
        for field in fields:
            same = [each for columns in held for each in columns if each.name.casefold() == field.name.casefold()]
            names = tuple(dict.fromkeys(each.name for each in same))
            name = field.name if field.name in names or not names else names[0]
            place = (*path, name)
            if len(names) > 1:
                self._spellings[place] = names
            kind = self._type(field.type, [each.type for each in same], place)
            found.append(pa.field(name, kind, metadata=field.metadata))
        return found

    def _type(self, kind: pa.DataType, held: Sequence[pa.DataType], path: _Path) -> pa.DataType:
        if pa.types.is_timestamp(kind):
            return self._timestamp(kind, [each for each in held if pa.types.is_timestamp(each)])
        if pa.types.is_struct(kind):
            inside = [child_fields(each) for each in held if pa.types.is_struct(each)]
            return pa.struct(self._fields(child_fields(kind), inside, path))
        if pa.types.is_list(kind):
            elements = [child_fields(each)[0].type for each in held if len(child_fields(each)) == 1]
            return pa.list_(self._type(kind.value_type, elements, (*path, "element")))
        if pa.types.is_map(kind):
            maps = [each for each in held if pa.types.is_map(each)]
            key = self._type(kind.key_type, [each.key_type for each in maps], (*path, "key"))
            return pa.map_(key, self._type(kind.item_type, [each.item_type for each in maps], (*path, "value")))
        return kind

    def _timestamp(self, kind: pa.DataType, held: Sequence[pa.DataType]) -> pa.DataType:
        if any(each.tz is not None for each in held):
            return _UTC
        return kind if self._silent_on_zones or not held else pa.timestamp("us")


def _refuse_twins(fields: Sequence[pa.Field], location: str) -> None:
    seen: dict[str, str] = {}
    for field in fields:
        other = seen.setdefault(field.name.casefold(), field.name)
        if other != field.name:
            raise InvalidSchema(
                f"{location} has the columns '{other}' and '{field.name}', which Hive does not tell apart: rename one",
                location=location,
            )
        _refuse_twins(child_fields(field.type), location)
