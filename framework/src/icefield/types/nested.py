"""The types of the table format, their text form and their allowed promotions.

Types are immutable, hashable and picklable. Nesting is limited to ``MAX_NESTING_DEPTH`` levels, so that functions
over types may recurse. Types without fields live in ``icefield.types.primitive`` and are re-exported here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from icefield.errors import InvalidSchema, printable
from icefield.types.primitive import (
    GeographyType,
    GeometryType,
    IcebergType,
    UnknownType,
    VariantType,
    check_int,
    parse_type,
    shown,
)

MAX_NESTING_DEPTH: Final = 100
"""How many structs, lists and maps may be inside one another."""


@dataclass(frozen=True, slots=True)
class NestedField:
    """A named field of a struct, or the element, key or value of a list or map.

    ``field_type`` may be given as the spec's string (``"decimal(9,2)"``). Defaults are internal values (see
    ``icefield.types.values.internal``), and None means no default. The default of a struct may be ``()``, which stands
    for the defaults of its fields. Raises ``InvalidSchema`` for invalid fields: a required ``unknown``, a default for a
    type that cannot have one.
    """

    field_id: int
    name: str
    field_type: IcebergType
    required: bool = False
    doc: str | None = None
    initial_default: Any = None
    write_default: Any = None

    def __post_init__(self) -> None:
        check_int("field id", self.field_id, 0, 2**31 - 1)
        if not isinstance(self.name, str):
            raise InvalidSchema(f"name of field {self.field_id} is not a string: {shown(self.name)}")
        object.__setattr__(self, "field_type", _as_type(self.field_type))
        if isinstance(self.field_type, UnknownType) and self.required:
            raise InvalidSchema(f"field '{self.name}' of type unknown cannot be required", field_id=self.field_id)
        if self.has_default and isinstance(self.field_type, (UnknownType, VariantType, GeometryType, GeographyType)):
            raise InvalidSchema(
                f"field '{self.name}' of type {self.field_type} cannot have a default other than null",
                field_id=self.field_id,
            )

    @property
    def optional(self) -> bool:
        """Whether null is allowed."""
        return not self.required

    @property
    def has_default(self) -> bool:
        """Whether either default is not null."""
        return self.initial_default is not None or self.write_default is not None

    def __str__(self) -> str:
        need = "required" if self.required else "optional"
        doc = f" ({self.doc})" if self.doc else ""
        return printable(f"{self.field_id}: {self.name}: {need} {self.field_type}{doc}")


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class _NestedType(IcebergType):
    """Stores depth, version and hash, so that they are computed from the children only once."""

    children: tuple[NestedField, ...]
    _depth: int
    _version: int
    _hash: int

    is_nested: ClassVar[bool] = True

    def _settle(self, *children: NestedField) -> None:
        depth = 1 + max((child.field_type.depth for child in children), default=0)
        if depth > MAX_NESTING_DEPTH:
            raise InvalidSchema(f"type is nested deeper than {MAX_NESTING_DEPTH} levels")
        version = max((child.field_type.min_format_version for child in children), default=1)
        object.__setattr__(self, "children", children)
        object.__setattr__(self, "_depth", depth)
        object.__setattr__(self, "_version", version)
        object.__setattr__(self, "_hash", hash((type(self).__name__, children)))

    @property
    def min_format_version(self) -> int:
        return self._version

    @property
    def depth(self) -> int:
        return self._depth

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.children == other.children

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class StructType(_NestedType):
    """Named fields in order: ``StructType(NestedField(1, "a", IntegerType()), ...)``.

    Raises ``InvalidSchema`` for two fields of one name.
    """

    fields: tuple[NestedField, ...]

    def __init__(self, *fields: NestedField) -> None:
        names = set()
        for child in fields:
            if not isinstance(child, NestedField):
                raise InvalidSchema(f"a struct is made of NestedField, not {shown(child)}")
            if child.name in names:
                raise InvalidSchema(f"two fields of a struct are named '{child.name}'", field_id=child.field_id)
            names.add(child.name)
        object.__setattr__(self, "fields", fields)
        self._settle(*fields)

    def field(self, field_id: int) -> NestedField | None:
        """The direct child with that id, or None."""
        return next((child for child in self.fields if child.field_id == field_id), None)

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[NestedField]:
        return iter(self.fields)

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return f"struct<{', '.join(map(str, self.fields))}>"

    def __repr__(self) -> str:
        return f"StructType({', '.join(map(repr, self.fields))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return StructType, self.fields


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class ListType(_NestedType):
    """A list; its element is a field of its own (``.element``)."""

    element: NestedField

    def __init__(self, element_id: int, element_type: IcebergType | str, element_required: bool = False) -> None:
        element = NestedField(element_id, "element", _as_type(element_type), element_required)
        object.__setattr__(self, "element", element)
        self._settle(element)

    @property
    def element_id(self) -> int:
        return self.element.field_id

    @property
    def element_type(self) -> IcebergType:
        return self.element.field_type

    @property
    def element_required(self) -> bool:
        return self.element.required

    def __str__(self) -> str:
        return f"list<{self.element_type}>"

    def __repr__(self) -> str:
        return f"ListType({self.element_id}, {self.element_type!r}, {self.element_required})"

    def __reduce__(self) -> tuple[Any, ...]:
        return ListType, (self.element_id, self.element_type, self.element_required)


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class MapType(_NestedType):
    """A map; key and value are fields of their own (``.key``, ``.value``), the key always required."""

    key: NestedField
    value: NestedField

    def __init__(
        self,
        key_id: int,
        key_type: IcebergType | str,
        value_id: int,
        value_type: IcebergType | str,
        value_required: bool = False,
    ) -> None:
        key = NestedField(key_id, "key", _as_type(key_type), True)
        value = NestedField(value_id, "value", _as_type(value_type), value_required)
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "value", value)
        self._settle(key, value)

    @property
    def key_id(self) -> int:
        return self.key.field_id

    @property
    def key_type(self) -> IcebergType:
        return self.key.field_type

    @property
    def value_id(self) -> int:
        return self.value.field_id

    @property
    def value_type(self) -> IcebergType:
        return self.value.field_type

    @property
    def value_required(self) -> bool:
        return self.value.required

    def __str__(self) -> str:
        return f"map<{self.key_type}, {self.value_type}>"

    def __repr__(self) -> str:
        return f"MapType({self.key_id}, {self.key_type!r}, {self.value_id}, {self.value_type!r}, {self.value_required})"

    def __reduce__(self) -> tuple[Any, ...]:
        return MapType, (self.key_id, self.key_type, self.value_id, self.value_type, self.value_required)


def nested_type(kind: type[IcebergType], children: Sequence[NestedField]) -> IcebergType:
    """A struct, list or map over its children."""
    if kind is StructType:
        return StructType(*children)
    if kind is ListType:
        (element,) = children
        return ListType(element.field_id, element.field_type, element.required)
    key, value = children
    return MapType(key.field_id, key.field_type, value.field_id, value.field_type, value.required)


def _as_type(given: IcebergType | str) -> IcebergType:
    if isinstance(given, IcebergType):
        return given
    return parse_type(given)
