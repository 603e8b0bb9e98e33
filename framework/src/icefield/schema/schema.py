"""Schemas: named columns in order, distinguished by their ids.

Spec: Schemas and Data Types, Identifier Field IDs, Reserved Field IDs.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from icefield.base.notebooks import html_of
from icefield.errors import IcefieldError, InvalidArgument, InvalidSchema, UnsupportedFeature
from icefield.schema.fields import FieldNames, fresh_fields, ids_in, internal_default, prune
from icefield.types import DecimalType, DoubleType, FloatType, IcebergType, ListType, MapType, NestedField, StructType
from icefield.types.arrow.types import to_arrow_field
from icefield.types.reserved import MAX_USER_FIELD_ID, RESERVED_FIELDS

FieldName = str | tuple[str, ...]
"""A column by its full name (``"a.b"``), or by its path (``("a", "b")``) where names hold dots themselves."""

_LONGEST_SUGGESTED = 200
_MOST_SUGGESTED = 1000
"""Limits of the time to search names for a similar one: characters of the name, and names."""


class Schema:
    """The columns of a table, or of a file: ``Schema(NestedField(1, "id", "long", required=True), ...)``.

    Immutable, hashable and picklable. Two schemas are equal if their fields and identifier fields are; ``schema_id``
    does not matter. Raises ``InvalidSchema``, with ``field_id``, for a duplicate id or name, a reserved id (metadata
    columns are allowed under their own names) and for wrong identifier fields.
    """

    __slots__ = ("_all_ids", "_arrow", "_by_id", "_identifier_field_ids", "_names", "_parents", "_schema_id", "_struct")

    _struct: StructType
    _schema_id: int
    _identifier_field_ids: tuple[int, ...]
    _by_id: dict[int, NestedField]
    _parents: dict[int, int]
    _names: FieldNames | None
    _all_ids: frozenset[int] | None
    _arrow: pa.Schema | None

    def __init__(self, *fields: NestedField, schema_id: int = 0, identifier_field_ids: Iterable[int] = ()) -> None:
        set_ = object.__setattr__
        set_(self, "_struct", StructType(*fields))
        set_(self, "_schema_id", schema_id)
        set_(self, "_identifier_field_ids", tuple(dict.fromkeys(identifier_field_ids)))
        set_(self, "_by_id", {})
        set_(self, "_parents", {})
        set_(self, "_names", None)
        set_(self, "_all_ids", None)
        set_(self, "_arrow", None)
        for field in fields:
            self._enter(field, None)
        for id_ in self._identifier_field_ids:
            self._check_identifier(id_)

    def _enter(self, field: NestedField, parent: int | None) -> None:
        id_ = field.field_id
        if id_ in self._by_id:
            other = self._by_id[id_].name
            raise InvalidSchema(f"fields '{other}' and '{field.name}' have the same id {id_}", field_id=id_)
        if id_ > MAX_USER_FIELD_ID and (id_ not in RESERVED_FIELDS or RESERVED_FIELDS[id_].name != field.name):
            raise InvalidSchema(
                f"id {id_} of field '{field.name}' is reserved; the highest is {MAX_USER_FIELD_ID}", field_id=id_
            )
        self._by_id[id_] = field
        if parent is not None:
            self._parents[id_] = parent
        for child in field.field_type.children:
            self._enter(child, id_)

    def _check_identifier(self, id_: int) -> None:
        field = self._by_id.get(id_)
        if field is None:
            raise InvalidSchema(f"identifier field {id_} is not in the schema", field_id=id_)
        name = f"identifier field '{self._full_name(id_)}'"
        if not field.field_type.is_primitive or isinstance(field.field_type, (FloatType, DoubleType)):
            raise InvalidSchema(f"{name} cannot be of type {field.field_type}", field_id=id_)
        for step in (field, *self._ancestors(id_)):
            if isinstance(step.field_type, (ListType, MapType)):
                raise InvalidSchema(f"{name} cannot be in a list or map", field_id=id_)
            if not step.required:
                raise InvalidSchema(f"{name} cannot be optional, nor be in an optional struct", field_id=id_)

    def _ancestors(self, id_: int) -> Iterator[NestedField]:
        parent = self._parents.get(id_)
        while parent is not None:
            yield self._by_id[parent]
            parent = self._parents.get(parent)

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """The columns, in order."""
        return self._struct.fields

    @property
    def schema_id(self) -> int:
        """Its number among the schemas of a table."""
        return self._schema_id

    @property
    def identifier_field_ids(self) -> tuple[int, ...]:
        """Ids of the fields that together identify a row, in their original order."""
        return self._identifier_field_ids

    def identifier_field_names(self) -> frozenset[str]:
        """Full names of the identifier fields."""
        return frozenset(self._full_name(id_) for id_ in self._identifier_field_ids)

    def as_struct(self) -> StructType:
        """The columns as one struct."""
        return self._struct

    @property
    def id_to_field(self) -> Mapping[int, NestedField]:
        """Every field by id, nested ones included, in depth-first order."""
        return MappingProxyType(self._by_id)

    @property
    def field_ids(self) -> frozenset[int]:
        """The ids of all fields, nested ones included."""
        if self._all_ids is None:
            object.__setattr__(self, "_all_ids", frozenset(self._by_id))
        assert self._all_ids is not None
        return self._all_ids

    @property
    def highest_field_id(self) -> int:
        """The highest id of a field, 0 in an empty schema. Metadata columns do not count."""
        return max((id_ for id_ in self._by_id if id_ <= MAX_USER_FIELD_ID), default=0)

    @property
    def column_names(self) -> list[str]:
        """The full names of all fields, nested ones included, in depth-first order."""
        return [self._full_name(id_) for id_ in self._by_id]

    def parent_of(self, field_id: int) -> int | None:
        """The id of the field that a field is in, or None for a column."""
        return self._parents.get(field_id)

    def is_repeated(self, field_id: int) -> bool:
        """Whether a field is inside a list or map, so that it has any number of values a row."""
        return any(isinstance(step.field_type, (ListType, MapType)) for step in self._ancestors(field_id))

    def find_field(self, name_or_id: FieldName | int, case_sensitive: bool = True) -> NestedField:
        """The field of that id, full name or path.

        Names include ``element``, ``key`` and ``value`` of lists and maps (``"points.element.x"``), which may be left
        out before a struct's field (``"points.x"``). Raises ``InvalidArgument`` for an unknown field and for an
        ambiguous name: a path, a tuple, distinguishes a field ``a.b`` from a field ``b`` in ``a``.
        """
        if isinstance(name_or_id, int):
            if name_or_id not in self._by_id:
                raise InvalidArgument(f"no field has the id {name_or_id}", field_id=name_or_id)
            return self._by_id[name_or_id]
        ids = self._lookup(name_or_id, case_sensitive)
        if len(ids) > 1:
            raise InvalidArgument(
                f"{_shown(name_or_id)} could mean the fields {sorted(ids)}; give a tuple of names, or mind the case"
            )
        if not ids:
            raise InvalidArgument(f"no column is named {_shown(name_or_id)}{self._suggestion(name_or_id)}")
        return self._by_id[next(iter(ids))]

    def has_field(self, name: FieldName, case_sensitive: bool = True) -> bool:
        """Whether ``find_field`` would find that name, or find it more than once."""
        return bool(self._lookup(name, case_sensitive))

    def find_type(self, name_or_id: FieldName | int, case_sensitive: bool = True) -> IcebergType:
        """The type of the field that ``find_field`` finds."""
        return self.find_field(name_or_id, case_sensitive).field_type

    def find_column_name(self, field_id: int) -> str | None:
        """The full name of a field, or None when no field has that id."""
        return self._full_name(field_id) if field_id in self._by_id else None

    def name_path(self, field_id: int) -> tuple[str, ...]:
        """The names from the column to a field, with ``element``, ``key`` and ``value``."""
        field = self.find_field(field_id)
        return (*(step.name for step in reversed(list(self._ancestors(field_id)))), field.name)

    def accessor_path(self, field_id: int) -> tuple[str, ...]:
        """The names of the structs and the field by which one row's value is reached.

        Raises ``InvalidArgument`` for a field in a list or map, which has many values in a row.
        """
        for step in self._ancestors(field_id):
            if not isinstance(step.field_type, StructType):
                raise InvalidArgument(f"field '{self._full_name(field_id)}' is in a list or map", field_id=field_id)
        return self.name_path(field_id)

    def select(self, *names: FieldName, case_sensitive: bool = True) -> Schema:
        """The schema of the named fields only, in this schema's order; ``"*"`` is all.

        A nested field brings the structs around it, without their other fields. Raises ``InvalidArgument``.
        """
        if "*" in names:
            return self
        return self.select_ids({self.find_field(name, case_sensitive).field_id for name in names})

    def select_ids(self, ids: Collection[int]) -> Schema:
        """The schema of the fields with those ids, each with its nested fields; unknown ids are ignored."""
        wanted = frozenset(ids)
        kept = [pruned for field in self.fields if (pruned := prune(field, wanted)) is not None]
        left = {id_ for field in kept for id_ in ids_in(field)}
        identifiers = [id_ for id_ in self._identifier_field_ids if id_ in left]
        return Schema(*kept, schema_id=self._schema_id, identifier_field_ids=identifiers)

    def with_schema_id(self, schema_id: int) -> Schema:
        """The same schema under another id."""
        if schema_id == self._schema_id:
            return self
        return Schema(*self.fields, schema_id=schema_id, identifier_field_ids=self._identifier_field_ids)

    def _full_name(self, field_id: int) -> str:
        return ".".join(self.name_path(field_id))

    def _lookup(self, name: FieldName, case_sensitive: bool) -> set[int]:
        if not is_path(name):
            raise InvalidArgument(f"a column is named by a string or a tuple of strings, not {name!r:.80}")
        if self._names is None:
            object.__setattr__(self, "_names", FieldNames(self._struct))
        assert self._names is not None
        if isinstance(name, str):
            return self._names.find(name, case_sensitive)
        return self._names.follow(self._struct, name, case_sensitive)

    def _suggestion(self, name: FieldName) -> str:
        string = (name if isinstance(name, str) else ".".join(name))[:_LONGEST_SUGGESTED]
        names = list(itertools.islice(self.column_names, _MOST_SUGGESTED))
        same = [each for each in names if each.lower() == string.lower()]
        if same:
            return f"; names are compared exactly here, and there is a '{same[0]}'"
        close = difflib.get_close_matches(string, names) or [each for each in names if each.endswith(f".{string}")]
        if close:
            return f"; did you mean '{close[0]}'?"
        own = [field.name for field in self.fields[:20]]
        return f"; there are {', '.join(own)}{', ...' if len(self.fields) > len(own) else ''}" if own else ""

    def __len__(self) -> int:
        return len(self.fields)

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        same_identifiers = set(self._identifier_field_ids) == set(other._identifier_field_ids)
        return self is other or (same_identifiers and self._struct == other._struct)

    def __hash__(self) -> int:
        return hash((self._struct, frozenset(self._identifier_field_ids)))

    def to_arrow(self) -> pa.Schema:
        """The Arrow schema of its rows in memory, with the ids of fields as metadata."""
        if self._arrow is None:
            object.__setattr__(self, "_arrow", pa.schema(map(to_arrow_field, self.fields)))
        return self._arrow

    def __arrow_c_schema__(self) -> Any:
        """The Arrow schema for another library, by Arrow's C data interface."""
        return self.to_arrow().__arrow_c_schema__()

    def __str__(self) -> str:
        return "".join(["table {\n", *(f"  {field}\n" for field in self.fields), "}"])

    _repr_html_ = html_of

    def __repr__(self) -> str:
        columns = "".join(f"{str(field)[:200]}, " for field in self.fields[:20])
        more = f"... {len(self.fields) - 20:,} more, " if len(self.fields) > 20 else ""
        ids = f"schema_id={self._schema_id}, identifier_field_ids={self._identifier_field_ids}"
        return f"Schema({columns}{more}{ids})"

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a schema is immutable; cannot set '{name}'")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a schema is immutable; cannot delete '{name}'")

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(Schema, schema_id=self._schema_id, identifier_field_ids=self._identifier_field_ids)
        return make, self.fields


def assign_fresh_ids(schema: Schema, next_id: Callable[[], int] | int = 1) -> tuple[Schema, dict[int, int]]:
    """The schema under new ids, and the new id of each old one.

    ``next_id`` returns one id per call, or is the first id. The fields of a struct are numbered before their nested
    fields. Default values may be given as Python objects. Raises ``InvalidSchema`` when ids run out.
    """
    take = itertools.count(next_id).__next__ if isinstance(next_id, int) else next_id
    mapping: dict[int, int] = {}
    fields = fresh_fields(schema.fields, take, mapping)
    identifiers = [mapping[id_] for id_ in schema.identifier_field_ids]
    return Schema(*fields, schema_id=schema.schema_id, identifier_field_ids=identifiers), mapping


def check_schema(schema: Schema, format_version: int, *, known: Collection[Schema] = ()) -> None:
    """Check that a table of ``format_version`` may be given this schema.

    Fields that a schema in ``known`` has with the same type and defaults are accepted, since the table has them.
    Raises ``UnsupportedFeature`` for a type or a default that the version lacks. Raises ``InvalidSchema`` for a
    metadata column, a scale that is negative or above the precision, or a struct's default other than null or empty.
    Both errors have ``field_id``.
    """
    for id_, field in schema.id_to_field.items():
        try:
            _check_field(field, schema.find_column_name(id_) or field.name, format_version)
        except IcefieldError:
            # Searched only on a failure, so that a normal change does not search all schemas of the table.
            if not any(_same_form(field, other.id_to_field.get(id_)) for other in known):
                raise


def _same_form(field: NestedField, other: NestedField | None) -> bool:
    """Whether two fields have the same type and defaults; nested fields are not compared here, but one by one."""
    if other is None or type(field.field_type) is not type(other.field_type):
        return False
    same_type = field.field_type.is_nested or field.field_type == other.field_type
    return same_type and (field.initial_default, field.write_default) == (other.initial_default, other.write_default)


def _check_field(field: NestedField, name: str, format_version: int) -> None:
    id_ = field.field_id
    if id_ > MAX_USER_FIELD_ID:
        raise InvalidSchema(f"id {id_} of field '{name}' is reserved for metadata columns", field_id=id_)
    since = 1 if field.field_type.is_nested else field.field_type.min_format_version
    if since > format_version:
        raise UnsupportedFeature(
            f"field '{name}' is of type {field.field_type}, which needs format version {since}; the table has "
            f"{format_version}: choose another type, or the property 'format-version' {since}",
            field_id=id_,
        )
    kind = field.field_type
    if isinstance(kind, DecimalType) and not 0 <= kind.scale <= kind.precision:
        why = "a negative scale" if kind.scale < 0 else "a scale above its precision"
        raise InvalidSchema(f"field '{name}' of type {kind} has {why}", field_id=id_)
    if not field.has_default:
        return
    if format_version < 3:
        raise UnsupportedFeature(
            f"field '{name}' has a default, which needs format version 3; the table has {format_version}", field_id=id_
        )
    for default in (field.initial_default, field.write_default):
        if isinstance(field.field_type, StructType) and default not in (None, ()):
            raise InvalidSchema(
                f"default of struct '{name}' is not null or empty: give its fields their own defaults", field_id=id_
            )
        internal_default(field, default)


def is_path(name: object) -> bool:
    """Whether an object can name a column: a string, or a tuple of strings."""
    return isinstance(name, str) or (isinstance(name, tuple) and all(isinstance(part, str) for part in name))


def _shown(name: FieldName) -> str:
    return f"'{name}'" if isinstance(name, str) else repr(name)
