"""Name mappings: the ids of columns in files that hold none, by name.

The table property ``schema.name-mapping.default`` holds one as JSON. A dot belongs to the name and does not make it a
path. Spec: Column Projection; Appendix C, name mapping.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from icefield.base.limits import MAX_NAME_LENGTH
from icefield.errors import InvalidSchema
from icefield.schema.json import check_json
from icefield.schema.schema import Schema
from icefield.types import MAX_NESTING_DEPTH, NestedField
from icefield.types.arrow.types import child_fields, field_id, is_list_like, list_of, with_field_id

_LONGEST: Final = 16 * 1024 * 1024
"""Of a mapping's JSON, in characters: one of 100,000 columns has five million."""


@dataclass(frozen=True, slots=True)
class MappedField:
    """The names that a field has in files, its id (None: such columns are left out) and the fields inside it."""

    names: tuple[str, ...]
    field_id: int | None = None
    fields: tuple[MappedField, ...] = ()
    _by_name: Mapping[str, MappedField] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", _by_name(self.fields))

    def child(self, name: str) -> MappedField | None:
        """The field directly inside that has that name in files."""
        return self._by_name.get(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return MappedField, (self.names, self.field_id, self.fields)

    def to_json(self) -> dict[str, Any]:
        """The JSON object of this field."""
        written: dict[str, Any] = {"names": list(self.names)}
        if self.field_id is not None:
            written["field-id"] = self.field_id
        if self.fields:
            written["fields"] = [child.to_json() for child in self.fields]
        return written


class NameMapping:
    """The mapped fields of a table. Raises ``InvalidSchema`` for a name or an id that is there twice."""

    __slots__ = ("_root",)
    _root: MappedField

    def __init__(self, fields: Iterable[MappedField] = ()) -> None:
        self._root = MappedField((), None, tuple(fields))
        ids: set[int] = set()
        for mapped in _walk(self._root.fields):
            if mapped.field_id in ids:
                raise InvalidSchema(f"name mapping: id {mapped.field_id} is there twice", field_id=mapped.field_id)
            if mapped.field_id is not None:
                ids.add(mapped.field_id)

    @property
    def fields(self) -> tuple[MappedField, ...]:
        """The mappings of the columns, in order."""
        return self._root.fields

    def find(self, *path: str) -> MappedField | None:
        """The mapping of the file's field at a path of names, or None."""
        mapped: MappedField | None = self._root
        for name in path:
            mapped = mapped.child(name) if mapped is not None else None
        return None if mapped is self._root else mapped

    def apply(self, schema: pa.Schema) -> pa.Schema:
        """The schema of a file with the ids that this mapping gives its fields.

        A schema that carries any id is returned unchanged: its names may mislead. Unmapped fields and fields nested in
        them get no id. If two columns are mapped to one id, the column with the first-listed name gets it.
        """
        if carries_ids(schema):
            return schema
        return pa.schema(_with_ids(list(schema), self._root), metadata=schema.metadata)

    def to_json(self) -> list[dict[str, Any]]:
        """The JSON list of this mapping; the table property holds its string."""
        return [mapped.to_json() for mapped in self.fields]

    def to_string(self) -> str:
        """The string for the table property."""
        return json.dumps(self.to_json(), ensure_ascii=False)

    def __eq__(self, other: object) -> bool:
        return self._root == other._root if isinstance(other, NameMapping) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._root)

    def __repr__(self) -> str:
        return f"NameMapping({list(self.fields)!r})"


def carries_ids(columns: pa.Schema | list[pa.Field], depth: int = 0) -> bool:
    """Whether any field of a file, at any depth, has an id."""
    if depth > MAX_NESTING_DEPTH and columns:
        raise InvalidSchema(f"Arrow type is nested deeper than {MAX_NESTING_DEPTH} levels")
    return any(field_id(column) is not None or carries_ids(child_fields(column.type), depth + 1) for column in columns)


def _by_name(fields: Iterable[MappedField]) -> dict[str, MappedField]:
    names: dict[str, MappedField] = {}
    for mapped in fields:
        for name in mapped.names:
            if names.setdefault(name, mapped) is not mapped:
                raise InvalidSchema(f"name mapping: the name '{name}' stands for two fields")
    return names


def _walk(fields: Iterable[MappedField]) -> Iterator[MappedField]:
    for mapped in fields:
        yield mapped
        yield from _walk(mapped.fields)


def _with_ids(columns: Sequence[pa.Field], parent: MappedField) -> list[pa.Field]:
    positions: dict[str, int] = {}
    for i, column in enumerate(columns):
        positions.setdefault(column.name, i)
    mapped_at = {}
    for mapped in parent.fields:
        chosen = next((positions[name] for name in mapped.names if name in positions), None)
        if chosen is not None:
            mapped_at[chosen] = mapped
    return [_with_id(column, mapped_at.get(i)) for i, column in enumerate(columns)]


def _with_id(column: pa.Field, mapped: MappedField | None) -> pa.Field:
    if mapped is None:
        return column
    column = column.with_type(_type_with_ids(column.type, mapped))
    return column if mapped.field_id is None else with_field_id(column, mapped.field_id)


def _type_with_ids(arrow_type: pa.DataType, mapped: MappedField) -> pa.DataType:
    if not mapped.fields:
        return arrow_type
    if pa.types.is_struct(arrow_type):
        return pa.struct(_with_ids(child_fields(arrow_type), mapped))
    if pa.types.is_map(arrow_type):
        # Files have many names for an element, a key and a value; a mapping has one name for each.
        key, value = child_fields(arrow_type)
        sides = _with_id(key, mapped.child("key")), _with_id(value, mapped.child("value"))
        return pa.map_(*sides, arrow_type.keys_sorted)
    if is_list_like(arrow_type):
        return list_of(arrow_type, _with_id(arrow_type.value_field, mapped.child("element")))
    return arrow_type


def parse_name_mapping(mapping: str | list[Any]) -> NameMapping:
    """Parse the string of the table property, or the JSON list in it. Unknown keys are ignored.

    Raises ``InvalidSchema`` that names the place of the fault.
    """
    if isinstance(mapping, str):
        if len(mapping) > _LONGEST:
            raise InvalidSchema(f"name mapping: {len(mapping):,} characters, where {_LONGEST:,} are the most")
        try:
            mapping = json.loads(mapping)
        except (ValueError, RecursionError) as error:
            raise InvalidSchema(f"name mapping is not JSON: {str(error)[:200]}") from None
    return NameMapping(_fields_from_json(mapping, "name mapping", 0))


def _fields_from_json(obj: Any, place: str, depth: int) -> tuple[MappedField, ...]:
    check_json(depth <= MAX_NESTING_DEPTH, place[:100], f"is nested deeper than {MAX_NESTING_DEPTH} levels")
    check_json(isinstance(obj, list), place, "is not a list")
    return tuple(_field_from_json(item, f"{place}[{i}]", depth) for i, item in enumerate(obj))


def _field_from_json(obj: Any, place: str, depth: int) -> MappedField:
    check_json(isinstance(obj, dict), place, "is not an object")
    names, id_, fields = obj.get("names"), obj.get("field-id"), obj.get("fields")
    are_names = isinstance(names, list) and all(isinstance(name, str) for name in names)
    check_json(are_names, place, "'names' is not a list of strings")
    are_short = all(len(name) <= MAX_NAME_LENGTH for name in names)
    check_json(are_short, place, f"a name of more than {MAX_NAME_LENGTH:,} characters")
    is_id = isinstance(id_, int) and not isinstance(id_, bool) and 0 <= id_ < 2**31
    check_json(id_ is None or is_id, place, "'field-id' is no id")
    children = () if fields is None else _fields_from_json(fields, f"{place}.fields", depth + 1)
    return MappedField(tuple(dict.fromkeys(names)), id_, children)


def create_name_mapping(schema: Schema) -> NameMapping:
    """The mapping of a schema's own names."""
    return NameMapping(_mapped(column) for column in schema.fields)


def _mapped(column: NestedField) -> MappedField:
    return MappedField((column.name,), column.field_id, tuple(map(_mapped, column.field_type.children)))


def update_name_mapping(mapping: NameMapping, schema: Schema) -> NameMapping:
    """The mapping after its table's schema became ``schema``.

    A renamed field keeps its old names and gains the new one, and a new field is added. A dropped field stays, so that
    its columns in old files are never read as a later field of that name. For the same reason, a name that is mapped
    to one field already is not mapped to another.
    """
    return NameMapping(_updated(mapping.fields, schema.fields))


def _updated(old: Sequence[MappedField], columns: Sequence[NestedField]) -> list[MappedField]:
    present = {column.field_id: column for column in columns}
    taken = {name for mapped in old for name in mapped.names}
    updated = []
    for mapped in old:
        column = present.pop(mapped.field_id, None) if mapped.field_id is not None else None
        updated.append(mapped if column is None else _grown(mapped, column, taken))
    for column in present.values():
        names = () if column.name in taken else (column.name,)
        inner = tuple(map(_mapped, column.field_type.children))
        updated.append(MappedField(names, column.field_id, inner))
    return updated


def _grown(mapped: MappedField, column: NestedField, taken: set[str]) -> MappedField:
    names = mapped.names
    if column.name not in names and column.name not in taken:
        names = (*names, column.name)
    return MappedField(names, mapped.field_id, tuple(_updated(mapped.fields, column.field_type.children)))
