"""The types without fields: their text form and promotions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from icefield.base.spelling import was_meant
from icefield.errors import InvalidSchema, UnsupportedFeature

if TYPE_CHECKING:
    from icefield.types.nested import NestedField

MAX_TYPE_STRING: Final = 1000
"""The longest string of a primitive type, in characters."""

MAX_FIXED_LENGTH: Final = 2**31 - 1
"""The longest ``fixed``, in bytes: Arrow and the file formats hold its length in 32 bits."""

DEFAULT_CRS: Final = "OGC:CRS84"
EDGE_ALGORITHMS: Final = frozenset({"spherical", "vincenty", "thomas", "andoyer", "karney"})


class IcebergType:
    """A type of the table format. ``str`` returns the spec's string. Types without parameters are equal by class."""

    __slots__ = ()

    is_primitive: ClassVar[bool] = False
    is_nested: ClassVar[bool] = False
    _since: ClassVar[int] = 1
    _string: ClassVar[str]

    @property
    def min_format_version(self) -> int:
        """The lowest table format version that has this type, with all that is nested in it."""
        return self._since

    @property
    def depth(self) -> int:
        """How many levels of struct, list and map the type has; 0 for a type that is not nested."""
        return 0

    @property
    def children(self) -> tuple[NestedField, ...]:
        """The fields directly inside; none for a type that is not nested."""
        return ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __str__(self) -> str:
        return self._string

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PrimitiveType(IcebergType):
    """A type without fields."""

    __slots__ = ()

    is_primitive = True


class BooleanType(PrimitiveType):
    """True or false."""

    __slots__ = ()
    _string = "boolean"


class IntegerType(PrimitiveType):
    """A signed integer of 32 bits."""

    __slots__ = ()
    _string = "int"


class LongType(PrimitiveType):
    """A signed integer of 64 bits."""

    __slots__ = ()
    _string = "long"


class FloatType(PrimitiveType):
    """A floating-point number of 32 bits, IEEE 754."""

    __slots__ = ()
    _string = "float"


class DoubleType(PrimitiveType):
    """A floating-point number of 64 bits, IEEE 754."""

    __slots__ = ()
    _string = "double"


class DateType(PrimitiveType):
    """A calendar day without time or zone, in days from 1970-01-01."""

    __slots__ = ()
    _string = "date"


class TimeType(PrimitiveType):
    """A time of day without date or zone, in microseconds from midnight."""

    __slots__ = ()
    _string = "time"


class AnyTimestampType(PrimitiveType):
    """The common class of the four timestamp types. ``digits`` are those of the fraction of a second."""

    __slots__ = ()
    has_zone: ClassVar[bool] = False
    digits: ClassVar[int] = 6


class TimestampType(AnyTimestampType):
    """A wall-clock time without zone, in microseconds from 1970-01-01T00:00:00."""

    __slots__ = ()
    _string = "timestamp"


class TimestamptzType(AnyTimestampType):
    """An instant, in microseconds from 1970-01-01T00:00:00Z. The zone it was written in is not kept."""

    __slots__ = ()
    _string = "timestamptz"
    has_zone = True


class TimestampNanoType(AnyTimestampType):
    """A wall-clock time without zone, in nanoseconds. Format version 3."""

    __slots__ = ()
    _string = "timestamp_ns"
    _since = 3
    digits = 9


class TimestamptzNanoType(AnyTimestampType):
    """An instant, in nanoseconds. Format version 3."""

    __slots__ = ()
    _string = "timestamptz_ns"
    _since = 3
    has_zone = True
    digits = 9


TIMESTAMP_TYPES: Final = (TimestampType, TimestamptzType, TimestampNanoType, TimestamptzNanoType)


class StringType(PrimitiveType):
    """Text of any length, UTF-8 in files."""

    __slots__ = ()
    _string = "string"


class UUIDType(PrimitiveType):
    """A UUID: 16 bytes, big-endian."""

    __slots__ = ()
    _string = "uuid"


class BinaryType(PrimitiveType):
    """Bytes of any length."""

    __slots__ = ()
    _string = "binary"


class UnknownType(PrimitiveType):
    """A column of nulls, its type not known yet; not stored in data files. Format version 3."""

    __slots__ = ()
    _string = "unknown"
    _since = 3


@dataclass(frozen=True, slots=True)
class DecimalType(PrimitiveType):
    """A fixed-point number of ``precision`` digits (1 to 38), ``scale`` of them after the point.

    A scale that is negative or above the precision can be read but not put into a new schema: the specification
    bounds the precision only, and no file format holds such values. Raises ``InvalidSchema``.
    """

    precision: int
    scale: int

    def __post_init__(self) -> None:
        check_int("precision of a decimal", self.precision, 1, 38)
        check_int(f"scale of a decimal of precision {self.precision}", self.scale, -38, 38)

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class FixedType(PrimitiveType):
    """Exactly ``length`` bytes. Raises ``InvalidSchema``."""

    length: int

    def __post_init__(self) -> None:
        check_int("length of a fixed", self.length, 1, MAX_FIXED_LENGTH)

    def __str__(self) -> str:
        return f"fixed[{self.length}]"


@dataclass(frozen=True, slots=True)
class GeometryType(PrimitiveType):
    """Shapes with planar edges, in well-known binary; ``crs`` is an opaque string. Format version 3."""

    crs: str = DEFAULT_CRS
    _since: ClassVar[int] = 3

    def __post_init__(self) -> None:
        _check_crs(self.crs)

    def __str__(self) -> str:
        return "geometry" if self.crs == DEFAULT_CRS else f"geometry({self.crs})"


@dataclass(frozen=True, slots=True)
class GeographyType(PrimitiveType):
    """Shapes on the globe, in well-known binary; ``algorithm`` interpolates their edges. Format version 3."""

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
    _string = "variant"
    _since = 3


_PLAIN: Final[dict[str, Callable[[], IcebergType]]] = {
    **{
        kind._string: kind
        for kind in (
            BooleanType, IntegerType, LongType, FloatType, DoubleType, DateType, TimeType, *TIMESTAMP_TYPES,
            StringType, UUIDType, BinaryType, UnknownType, VariantType,
        )
    },
    "geometry": GeometryType,
    "geography": GeographyType,
}  # fmt: skip

_DECIMAL = re.compile(r"decimal\s*\(\s*([0-9]{1,4})\s*,\s*(-?[0-9]{1,4})\s*\)")
_FIXED = re.compile(r"fixed\s*\[\s*([0-9]{1,10})\s*\]")
_GEOMETRY = re.compile(r"geometry\s*\(([^,()]*)\)")
_GEOGRAPHY = re.compile(r"geography\s*\(([^,()]*)(?:,([^,()]*))?\)")
_PARAMETERISED = re.compile(r"(decimal|fixed|geometry|geography)\s*(?:[\[(]|$)")


def parse_type(string: str) -> IcebergType:
    """The type that a string of the spec names: ``"long"``, ``"decimal(9,2)"``, ``"fixed[16]"``, ``"variant"``.

    Blanks around parameters are accepted. Nested types have no text form in table metadata and are not parsed.
    Raises ``UnsupportedFeature`` for a name that the format does not have and ``InvalidSchema`` for wrong
    parameters. Spec: Appendix C, types.
    """
    if not isinstance(string, str):
        raise InvalidSchema(
            f"a type is an Icefield type, a pyarrow type or a string such as 'long', not {shown(string)}"
        )
    if len(string) > MAX_TYPE_STRING:
        raise InvalidSchema(f"a type's string is longer than {MAX_TYPE_STRING} characters: {shown(string)}")
    string = string.strip()
    plain = _PLAIN.get(string)
    if plain is not None:
        return plain()
    try:
        if match := _DECIMAL.fullmatch(string):
            return DecimalType(int(match[1]), int(match[2]))
        if match := _FIXED.fullmatch(string):
            return FixedType(int(match[1]))
        if match := _GEOMETRY.fullmatch(string):
            return GeometryType(match[1].strip())
        if match := _GEOGRAPHY.fullmatch(string):
            return GeographyType(match[1].strip(), "spherical" if match[2] is None else match[2].strip())
    except InvalidSchema as error:
        raise InvalidSchema(f"type {shown(string)}: {error.message}") from None
    if _PARAMETERISED.match(string):
        raise InvalidSchema(f"wrong parameters of a type: {shown(string)}")
    raise UnsupportedFeature(f"unknown type: {shown(string)}{_meant(string)}")


_OTHER_NAMES: Final = {
    "int": ("integer", "smallint", "tinyint", "int8", "int16", "int32"),
    "long": ("bigint", "int64"),
    "float": ("real", "float32"),
    "double": ("float64",),
    "string": ("str", "text", "varchar", "char", "utf8", "object"),
    "boolean": ("bool",),
    "binary": ("bytes", "blob", "varbinary", "bytea"),
    "timestamp": ("datetime", "timestamp_ntz", "datetime64"),
    "timestamptz": ("timestamp_ltz", "timestamp with time zone"),
    "decimal(38, 9)": ("numeric", "number"),
}
"""Names that other systems have for types."""


def _meant(string: str) -> str:
    """The type that a name of another system, or a misspelt one, probably means, and the types that there are."""
    name = string.partition("(")[0].strip().lower()
    same = next((kind for kind, others in _OTHER_NAMES.items() if name in others), None)
    meant = was_meant(name, _PLAIN) if same is None else f"; was '{same}' meant?"
    return meant or f"; types are {', '.join(sorted(_PLAIN))}, decimal(p, s) and fixed[n]"


_PROMOTIONS: Final[dict[type[IcebergType], dict[type[IcebergType], int]]] = {
    IntegerType: {LongType: 1},
    FloatType: {DoubleType: 1},
    DateType: {TimestampType: 3, TimestampNanoType: 3},
}


def promotion_allowed(old: IcebergType, new: IcebergType, format_version: int) -> bool:
    """Whether a column of type ``old`` may become ``new`` without a change of its files. True for equal types.

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


def check_int(what: str, value: object, low: int, high: int) -> None:
    """Raise ``InvalidSchema`` for anything but an integer in the range."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidSchema(f"{what} must be an integer from {low} to {high}, not {shown(value)}")


def _check_crs(crs: object) -> None:
    if not isinstance(crs, str) or not crs or len(crs) > MAX_TYPE_STRING or any(c in crs for c in ",()"):
        raise InvalidSchema(f"a CRS is an identifier such as 'srid:4326' or 'projjson:<property>', not {shown(crs)}")
    if crs.lstrip().startswith("{"):
        raise InvalidSchema("a CRS cannot be inline PROJJSON: store it in a table property, use 'projjson:<property>'")


def shown(value: object) -> str:
    """The form of a value in a message: its ``repr``, cut to a bounded length."""
    try:
        string = repr(value)
    except ValueError:
        string = f"{type(value).__name__} that is too long to show"
    return string if len(string) <= 80 else f"{string[:77]}..."
