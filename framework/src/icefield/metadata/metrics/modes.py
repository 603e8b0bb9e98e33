"""Which metrics go into a manifest, and in which form: modes by column, truncated and encoded bounds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from icefield.errors import InvalidArgument
from icefield.metadata.metrics.collector import Metrics
from icefield.metadata.properties import (
    METRICS_COLUMN,
    METRICS_DEFAULT,
    METRICS_MAX_INFERRED_COLUMNS,
    get_int,
    get_str,
)
from icefield.schema import Schema
from icefield.types import (
    BinaryType,
    GeographyType,
    GeometryType,
    IcebergType,
    StringType,
    UnknownType,
)
from icefield.types.values import GeoPoint, geo_point_to_bytes, value_to_bytes

_DEFAULT_LENGTH: Final = 16
_TRUNCATE: Final = re.compile(r"truncate\(\s*([0-9]{1,9})\s*\)", re.ASCII)
_SURROGATES: Final = range(0xD800, 0xE000)
_LAST_CODE_POINT: Final = 0x10FFFF


class MetricsKind(Enum):
    """How much is kept of a column's metrics."""

    NONE = "none"
    COUNTS = "counts"
    TRUNCATE = "truncate"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """How much is kept of a column's metrics: nothing, counts, bounds cut to ``length``, or all."""

    kind: MetricsKind
    length: int | None = None

    def __str__(self) -> str:
        return f"truncate({self.length})" if self.kind is MetricsKind.TRUNCATE else self.kind.value


NONE: Final = MetricsMode(MetricsKind.NONE)
COUNTS: Final = MetricsMode(MetricsKind.COUNTS)
FULL: Final = MetricsMode(MetricsKind.FULL)
DEFAULT_MODE: Final = MetricsMode(MetricsKind.TRUNCATE, _DEFAULT_LENGTH)


def parse_mode(string: str) -> MetricsMode:
    """The mode that ``none``, ``counts``, ``full`` or ``truncate(16)`` names; case does not matter.

    Raises ``InvalidArgument``.
    """
    folded = string.strip().lower()
    for mode in (NONE, COUNTS, FULL):
        if folded == mode.kind.value:
            return mode
    match = _TRUNCATE.fullmatch(folded)
    if match is None or int(match[1]) < 1:
        raise InvalidArgument(f"metrics are none, counts, full or truncate(<length of at least 1>), not {string!r:.60}")
    return MetricsMode(MetricsKind.TRUNCATE, int(match[1]))


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """The mode of each leaf column, by field id."""

    default: MetricsMode = DEFAULT_MODE
    modes: Mapping[int, MetricsMode] = field(default_factory=dict)

    @classmethod
    def from_properties(
        cls, properties: Mapping[str, str], schema: Schema, sorted_ids: Iterable[int] = ()
    ) -> MetricsConfig:
        """The modes that the table properties ``write.metadata.metrics.*`` ask for.

        If the table sets no default, ``write.metadata.metrics.max-inferred-column-defaults`` limits how many leaves
        have ``truncate(16)``, the leaves nearest the root first; the rest have none. The sort columns of files,
        ``sorted_ids``, have bounds unless a property names them. Properties of columns that are not in the schema are
        ignored. Raises ``InvalidArgument`` that names the property.
        """
        modes: dict[int, MetricsMode] = {}
        default = _property_mode(METRICS_DEFAULT.name, get_str(properties, METRICS_DEFAULT))
        if METRICS_DEFAULT.name not in properties:
            limit = get_int(properties, METRICS_MAX_INFERRED_COLUMNS)
            leaves = [id_ for id_, column in schema.id_to_field.items() if not column.field_type.is_nested]
            columns = {column.field_id for column in schema.fields}
            leaves.sort(key=lambda id_: 1 if id_ in columns else len(schema.name_path(id_)))
            modes.update(dict.fromkeys(leaves[limit:], NONE))
        for id_ in sorted_ids:
            if modes.get(id_, default).kind in (MetricsKind.NONE, MetricsKind.COUNTS):
                modes[id_] = DEFAULT_MODE
        for name, string in properties.items():
            column = name.removeprefix(METRICS_COLUMN.name)
            if column != name and schema.has_field(column):
                modes[schema.find_field(column).field_id] = _property_mode(name, string)
        return cls(default, modes)

    def mode(self, field_id: int) -> MetricsMode:
        """The mode of a column."""
        return self.modes.get(field_id, self.default)

    def omitted(self, schema: Schema) -> frozenset[int]:
        """The ids of the fields without metrics, which a writer need not collect."""
        return frozenset(id_ for id_ in schema.id_to_field if self.mode(id_).kind is MetricsKind.NONE)


def _property_mode(name: str, string: str) -> MetricsMode:
    try:
        return parse_mode(string)
    except InvalidArgument as error:
        raise InvalidArgument(f"table property '{name}': {error}", property=name) from None


def apply_modes(metrics: Metrics, config: MetricsConfig, schema: Schema) -> Metrics:
    """The metrics for a manifest: ids of ``schema`` only, counts and bounds as the modes ask.

    Bounds become bytes in the single-value form of the spec's appendix D. A map without ids means that nothing is
    known; the manifest must omit it. NaN bounds, bounds of types without an order and bounds inside lists and maps are
    left out. Strings and bytes are cut: the lower bound to a prefix, the upper bound to a prefix raised by one; other
    types stay whole.
    """
    counted = schema.id_to_field.keys() - config.omitted(schema)
    with_bounds = metrics.lower_bounds.keys() | metrics.upper_bounds.keys()
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for id_ in counted & with_bounds:
        if config.mode(id_).kind is MetricsKind.COUNTS:
            continue
        kind = schema.id_to_field[id_].field_type
        if not kind.is_primitive or isinstance(kind, UnknownType) or schema.is_repeated(id_):
            continue
        length = config.mode(id_).length
        _put(lower, id_, kind, truncate_lower(kind, metrics.lower_bounds.get(id_), length))
        _put(upper, id_, kind, truncate_upper(kind, metrics.upper_bounds.get(id_), length))
    return Metrics(
        record_count=metrics.record_count,
        column_sizes={id_: size for id_, size in metrics.column_sizes.items() if id_ in schema.id_to_field},
        value_counts=_only(metrics.value_counts, counted),
        null_value_counts=_only(metrics.null_value_counts, counted),
        nan_value_counts=_only(metrics.nan_value_counts, counted),
        lower_bounds=lower,
        upper_bounds=upper,
    )


def _only(counts: Mapping[int, int], ids: set[int]) -> dict[int, int]:
    return {id_: count for id_, count in counts.items() if id_ in ids}


def _put(bounds: dict[int, bytes], field_id: int, kind: IcebergType, value: Any) -> None:
    if value is None or value != value:
        return
    if isinstance(kind, (GeometryType, GeographyType)):
        # The bound of a shape is a corner of its bounding box; any other value is no bound.
        if isinstance(value, GeoPoint):
            bounds[field_id] = geo_point_to_bytes(value)
        return
    bounds[field_id] = value_to_bytes(kind, value)


def truncate_lower(kind: IcebergType, value: Any, length: int | None) -> Any:
    """The greatest lower bound of at most ``length`` code points or bytes: a prefix. None stays None.

    Types other than string and binary are not cut; nor is anything when ``length`` is None.
    """
    if length is None or value is None or not isinstance(kind, (StringType, BinaryType)):
        return value
    return value[:length]


def truncate_upper(kind: IcebergType, value: Any, length: int | None) -> Any:
    """An upper bound of at most ``length`` code points or bytes: a prefix, cut after the last unit that can be raised.

    That unit is raised by one. None if no unit can be raised. Types other than string and binary are not cut.
    """
    if length is None or value is None or not isinstance(kind, (StringType, BinaryType)) or len(value) <= length:
        return value
    prefix = value[:length]
    if isinstance(prefix, bytes):
        kept = prefix.rstrip(b"\xff")
        return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
    for end in range(len(prefix) - 1, -1, -1):
        code_point = ord(prefix[end]) + 1
        if code_point in _SURROGATES:
            code_point = _SURROGATES.stop
        if code_point <= _LAST_CODE_POINT:
            return prefix[:end] + chr(code_point)
    return None
