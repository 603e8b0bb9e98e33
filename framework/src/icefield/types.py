"""The types of the table format, their text form and what each may be promoted to.

Types are immutable, hashable and picklable. Nesting is limited to ``MAX_NESTING_DEPTH`` levels, so that whatever
walks a type may recurse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any, ClassVar, Final

from icefield.errors import InvalidSchema, UnsupportedFeature

MAX_NESTING_DEPTH: Final = 100
"""How many structs, lists and maps may lie inside one another."""

MAX_TYPE_TEXT: Final = 1000
"""The longest text of a primitive type, in characters."""

MAX_FIXED_LENGTH: Final = 2**31 - 1
"""The longest ``fixed``, in bytes: Arrow, Avro and Parquet hold its length in 32 bits."""

DEFAULT_CRS: Final = "OGC:CRS84"
EDGE_ALGORITHMS: Final = frozenset({"spherical", "vincenty", "thomas", "andoyer", "karney"})


class IcebergType:
    """A type of the table format. ``str`` gives the spec's text."""

    __slots__ = ()

    is_primitive: ClassVar[bool] = False
    is_nested: ClassVar[bool] = False
    _since: ClassVar[int] = 1

    @property
    def min_format_version(self) -> int:
        """The lowest table format version that has this type, with all that is nested in it."""
        return self._since

    @property
    def depth(self) -> int:
        """How many levels of struct, list and map it has; 0 for what is not nested."""
        return 0


class PrimitiveType(IcebergType):
    """A type without fields. Those without parameters are equal when they are of one class."""

    __slots__ = ()

    is_primitive = True
    _text: ClassVar[str]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class BooleanType(PrimitiveType):
    """True or false."""

    __slots__ = ()
    _text = "boolean"


class IntegerType(PrimitiveType):
    """A signed integer of 32 bits."""

    __slots__ = ()
    _text = "int"


class LongType(PrimitiveType):
    """A signed integer of 64 bits."""

    __slots__ = ()
    _text = "long"


class FloatType(PrimitiveType):
    """A floating-point number of 32 bits, IEEE 754."""

    __slots__ = ()
    _text = "float"


class DoubleType(PrimitiveType):
    """A floating-point number of 64 bits, IEEE 754."""

    __slots__ = ()
    _text = "double"


class DateType(PrimitiveType):
    """A calendar day without time or zone, in days from 1970-01-01."""

    __slots__ = ()
    _text = "date"


class TimeType(PrimitiveType):
    """A time of day without date or zone, in microseconds from midnight."""

    __slots__ = ()
    _text = "time"


class TimestampType(PrimitiveType):
    """A wall-clock time without zone, in microseconds from 1970-01-01T00:00:00."""

    __slots__ = ()
    _text = "timestamp"


class TimestamptzType(PrimitiveType):
    """An instant, in microseconds from 1970-01-01T00:00:00Z. The zone it was written in is not kept."""

    __slots__ = ()
    _text = "timestamptz"


class TimestampNanoType(PrimitiveType):
    """A wall-clock time without zone, in nanoseconds. Format version 3."""

    __slots__ = ()
    _text = "timestamp_ns"
    _since = 3


class TimestamptzNanoType(PrimitiveType):
    """An instant, in nanoseconds. Format version 3."""

    __slots__ = ()
    _text = "timestamptz_ns"
    _since = 3


class StringType(PrimitiveType):
    """Text of any length, UTF-8 in files."""

    __slots__ = ()
    _text = "string"


class UUIDType(PrimitiveType):
    """A UUID: 16 bytes, big-endian."""

    __slots__ = ()
    _text = "uuid"


class BinaryType(PrimitiveType):
    """Bytes of any length."""

    __slots__ = ()
    _text = "binary"


class UnknownType(PrimitiveType):
    """A column of nulls whose type is not known yet; not stored in data files. Format version 3."""

    __slots__ = ()
    _text = "unknown"
    _since = 3


@dataclass(frozen=True, slots=True)
class DecimalType(PrimitiveType):
    """A fixed-point number of ``precision`` digits (1 to 38), ``scale`` of them after the point.

    A negative scale can be read but not put into a new schema. Raises ``InvalidSchema``.
    """

    precision: int
    scale: int

    def __post_init__(self) -> None:
        _check_int("precision of a decimal", self.precision, 1, 38)
        _check_int(f"scale of a decimal of precision {self.precision}", self.scale, -38, self.precision)

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class FixedType(PrimitiveType):
    """Exactly ``length`` bytes. Raises ``InvalidSchema``."""

    length: int

    def __post_init__(self) -> None:
        _check_int("length of a fixed", self.length, 1, MAX_FIXED_LENGTH)

    def __str__(self) -> str:
        return f"fixed[{self.length}]"


@dataclass(frozen=True, slots=True)
class GeometryType(PrimitiveType):
    """Shapes with planar edges, in well-known binary; ``crs`` is opaque text. Format version 3."""

    crs: str = DEFAULT_CRS
    _since: ClassVar[int] = 3

    def __post_init__(self) -> None:
        _check_crs(self.crs)

    def __str__(self) -> str:
        return "geometry" if self.crs == DEFAULT_CRS else f"geometry({self.crs})"


@dataclass(frozen=True, slots=True)
class GeographyType(PrimitiveType):
    """Shapes on the globe, in well-known binary; ``algorithm`` says how edges run. Format version 3."""

    crs: str = DEFAULT_CRS
    algorithm: str = "spherical"
    _since: ClassVar[int] = 3

    def __post_init__(self) -> None:
        _check_crs(self.crs)
        if self.algorithm not in EDGE_ALGORITHMS:
            known = ", ".join(sorted(EDGE_ALGORITHMS))
            raise InvalidSchema(f"edge algorithm of a geography is one of {known}, not {shown(self.algorithm)}")

    def __str__(self) -> str:
        if self.algorithm != "spherical":
            return f"geography({self.crs}, {self.algorithm})"
        return "geography" if self.crs == DEFAULT_CRS else f"geography({self.crs})"


class VariantType(IcebergType):
    """A semi-structured value. Neither primitive nor nested. Format version 3."""

    __slots__ = ()
    _since = 3

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __str__(self) -> str:
        return "variant"

    def __repr__(self) -> str:
        return "VariantType()"


@dataclass(frozen=True, slots=True)
class NestedField:
    """A named field of a struct, or the element, key or value of a list or map.

    ``field_type`` may be given as the spec's text (``"decimal(9,2)"``). Defaults are internal values (see
    ``icefield.values``), None is none; that of a struct may be ``()``, which stands for the defaults of its
    fields. Raises ``InvalidSchema`` for what can never be: a required ``unknown``, a default for a type that has
    none.
    """

    field_id: int
    name: str
    field_type: IcebergType
    required: bool = False
    doc: str | None = None
    initial_default: Any = None
    write_default: Any = None

    def __post_init__(self) -> None:
        _check_int("field id", self.field_id, 0, 2**31 - 1)
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
        return f"{self.field_id}: {self.name}: {need} {self.field_type}{doc}"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class _NestedType(IcebergType):
    """Holds depth, version and hash, taken once from the children, so that none of them is a walk."""

    _depth: int = field(compare=False)
    _version: int = field(compare=False)
    _hash: int = field(compare=False)

    is_nested: ClassVar[bool] = True

    def _settle(self, children: tuple[NestedField, ...]) -> None:
        depth = 1 + max((child.field_type.depth for child in children), default=0)
        if depth > MAX_NESTING_DEPTH:
            raise InvalidSchema(f"type is nested deeper than {MAX_NESTING_DEPTH} levels")
        object.__setattr__(self, "_depth", depth)
        version = max((child.field_type.min_format_version for child in children), default=1)
        object.__setattr__(self, "_version", version)
        object.__setattr__(self, "_hash", hash((type(self).__name__, children)))

    @property
    def min_format_version(self) -> int:
        return self._version

    @property
    def depth(self) -> int:
        return self._depth

    @property
    def children(self) -> tuple[NestedField, ...]:
        """The fields directly inside."""
        raise FrozenInstanceError  # pragma: no cover - every nested type defines it


@dataclass(frozen=True, slots=True, init=False, repr=False)
class StructType(_NestedType):
    """Named fields in order: ``StructType(NestedField(1, "a", IntegerType()), ...)``.

    Raises ``InvalidSchema`` for two fields of one name.
    """

    fields: tuple[NestedField, ...]

    def __init__(self, *fields: NestedField) -> None:
        object.__setattr__(self, "fields", _check_fields(fields))
        self._settle(fields)

    @property
    def children(self) -> tuple[NestedField, ...]:
        return self.fields

    def field(self, field_id: int) -> NestedField | None:
        """The direct child with that id, or None."""
        return next((child for child in self.fields if child.field_id == field_id), None)

    def field_by_name(self, name: str, case_sensitive: bool = True) -> NestedField | None:
        """The first direct child with that name, or None."""
        if case_sensitive:
            return next((child for child in self.fields if child.name == name), None)
        return next((child for child in self.fields if child.name.lower() == name.lower()), None)

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[NestedField]:
        return iter(self.fields)

    def __bool__(self) -> bool:
        return True

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"struct<{', '.join(map(str, self.fields))}>"

    def __repr__(self) -> str:
        return f"StructType({', '.join(map(repr, self.fields))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return StructType, self.fields


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ListType(_NestedType):
    """A list; its element is a field of its own (``.element``)."""

    element: NestedField

    def __init__(self, element_id: int, element_type: IcebergType | str, element_required: bool = False) -> None:
        element = NestedField(element_id, "element", _as_type(element_type), element_required)
        object.__setattr__(self, "element", element)
        self._settle((element,))

    @property
    def element_id(self) -> int:
        return self.element.field_id

    @property
    def element_type(self) -> IcebergType:
        return self.element.field_type

    @property
    def element_required(self) -> bool:
        return self.element.required

    @property
    def children(self) -> tuple[NestedField, ...]:
        return (self.element,)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"list<{self.element_type}>"

    def __repr__(self) -> str:
        return f"ListType({self.element_id}, {self.element_type!r}, {self.element_required})"

    def __reduce__(self) -> tuple[Any, ...]:
        return ListType, (self.element_id, self.element_type, self.element_required)


@dataclass(frozen=True, slots=True, init=False, repr=False)
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
        self._settle((key, value))

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

    @property
    def children(self) -> tuple[NestedField, ...]:
        return (self.key, self.value)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"map<{self.key_type}, {self.value_type}>"

    def __repr__(self) -> str:
        return f"MapType({self.key_id}, {self.key_type!r}, {self.value_id}, {self.value_type!r}, {self.value_required})"

    def __reduce__(self) -> tuple[Any, ...]:
        return MapType, (self.key_id, self.key_type, self.value_id, self.value_type, self.value_required)


_PLAIN: Final[dict[str, Callable[[], IcebergType]]] = {
    **{
        kind._text: kind
        for kind in (
            BooleanType, IntegerType, LongType, FloatType, DoubleType, DateType, TimeType, TimestampType,
            TimestamptzType, TimestampNanoType, TimestamptzNanoType, StringType, UUIDType, BinaryType, UnknownType,
        )
    },
    "variant": VariantType,
    "geometry": GeometryType,
    "geography": GeographyType,
}  # fmt: skip

_DECIMAL = re.compile(r"decimal\s*\(\s*([0-9]{1,4})\s*,\s*(-?[0-9]{1,4})\s*\)")
_FIXED = re.compile(r"fixed\s*\[\s*([0-9]{1,10})\s*\]")
_GEOMETRY = re.compile(r"geometry\s*\(([^,()]*)\)")
_GEOGRAPHY = re.compile(r"geography\s*\(([^,()]*)(?:,([^,()]*))?\)")
_PARAMETERISED = re.compile(r"(decimal|fixed|geometry|geography)\s*(?:[\[(]|$)")


def parse_type(text: str) -> IcebergType:
    """The type that a text of the spec names: ``"long"``, ``"decimal(9,2)"``, ``"fixed[16]"``, ``"variant"``.

    Blanks around parameters are accepted. Nested types have no text form in table metadata and are not parsed.
    Raises ``UnsupportedFeature`` for a name that the format does not have and ``InvalidSchema`` for wrong
    parameters. Spec: Appendix C, types.
    """
    if not isinstance(text, str):
        raise InvalidSchema(f"a type is text, not {shown(text)}")
    if len(text) > MAX_TYPE_TEXT:
        raise InvalidSchema(f"a type's text is longer than {MAX_TYPE_TEXT} characters: {shown(text)}")
    text = text.strip()
    plain = _PLAIN.get(text)
    if plain is not None:
        return plain()
    try:
        parameterised = _parse_parameterised(text)
    except InvalidSchema as error:
        raise InvalidSchema(f"type {shown(text)}: {error.message}") from None
    if parameterised is not None:
        return parameterised
    if _PARAMETERISED.match(text):
        raise InvalidSchema(f"wrong parameters of a type: {shown(text)}")
    raise UnsupportedFeature(f"unknown type: {shown(text)}")


def _parse_parameterised(text: str) -> IcebergType | None:
    if match := _DECIMAL.fullmatch(text):
        return DecimalType(int(match[1]), int(match[2]))
    if match := _FIXED.fullmatch(text):
        return FixedType(int(match[1]))
    if match := _GEOMETRY.fullmatch(text):
        return GeometryType(match[1].strip())
    if match := _GEOGRAPHY.fullmatch(text):
        return GeographyType(match[1].strip(), "spherical" if match[2] is None else match[2].strip())
    return None


_PROMOTIONS: Final[dict[type[IcebergType], dict[type[IcebergType], int]]] = {
    IntegerType: {LongType: 1},
    FloatType: {DoubleType: 1},
    DateType: {TimestampType: 3, TimestampNanoType: 3},
}


def promotion_allowed(old: IcebergType, new: IcebergType, format_version: int) -> bool:
    """Whether a column of type ``old`` may become ``new`` without touching its files. A type may stay what it is.

    Nested types are never promoted as a whole; their fields are, one by one. Spec: Schema Evolution.
    """
    if old == new:
        return True
    if isinstance(old, UnknownType):
        return format_version >= 3
    if isinstance(old, DecimalType) and isinstance(new, DecimalType):
        return old.scale == new.scale and new.precision > old.precision
    since = _PROMOTIONS.get(type(old), {}).get(type(new))
    return since is not None and format_version >= since


def _as_type(given: IcebergType | str) -> IcebergType:
    if isinstance(given, IcebergType):
        return given
    return parse_type(given)


def _check_fields(fields: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
    names = set()
    for child in fields:
        if not isinstance(child, NestedField):
            raise InvalidSchema(f"a struct is made of NestedField, not {shown(child)}")
        if child.name in names:
            raise InvalidSchema(f"two fields of a struct are named '{child.name}'", field_id=child.field_id)
        names.add(child.name)
    return fields


def _check_int(what: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidSchema(f"{what} must be an integer from {low} to {high}, not {shown(value)}")


def _check_crs(crs: object) -> None:
    if not isinstance(crs, str) or not crs or len(crs) > MAX_TYPE_TEXT or any(c in crs for c in ",()"):
        raise InvalidSchema(f"a CRS is an identifier such as 'srid:4326' or 'projjson:<property>', not {shown(crs)}")
    if crs.lstrip().startswith("{"):
        raise InvalidSchema("a CRS cannot be inline PROJJSON: store it in a table property, use 'projjson:<property>'")


def shown(value: object) -> str:
    """What stands for a value in a message: its ``repr``, of bounded length whatever the value."""
    try:
        text = repr(value)
    except ValueError:
        text = f"{type(value).__name__} that is too long to show"
    return text if len(text) <= 80 else f"{text[:77]}..."
