"""The files of a plan in JSON, and their conversion to data files with the same checks as for manifests."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Annotated, Any, Final

import msgspec
from icefield.abc import ScanPlanRequest
from icefield.errors import InvalidArgument, InvalidMetadata
from icefield.schema import Schema
from icefield.toolkit import decodable, value_from_bytes, value_from_json, value_to_bytes, without_userinfo
from icefield.types import (
    BinaryType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    PrimitiveType,
    StringType,
)
from icefield.writing import DataFile, DataFileContent, files_of_columns

Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
NumberedId = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


@decodable
class ListedNumbers(msgspec.Struct, frozen=True, gc=False):
    """Numbers by field id, as two lists."""

    keys: tuple[Number, ...] = ()
    values: tuple[Number, ...] = ()


@decodable
class ListedValues(msgspec.Struct, frozen=True, gc=False):
    """Values by field id, as two lists: in the JSON form of the field's type, or as bytes in hexadecimal digits."""

    keys: tuple[Number, ...] = ()
    values: tuple[Any, ...] = ()


@decodable
class ListedFile(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", gc=False):
    """A data file or a delete file in JSON, by the names of the REST protocol.

    ``content`` is ``data``, ``position-deletes`` or ``equality-deletes``. ``partition`` has the JSON form of a value
    for each field of the spec, in order, or by field id.
    """

    file_path: str
    file_format: str
    record_count: Number
    file_size_in_bytes: Number
    content: str = "data"
    spec_id: NumberedId = 0
    partition: tuple[Any, ...] | dict[str, Any] = ()
    split_offsets: tuple[Number, ...] | None = None
    sort_order_id: NumberedId | None = None
    first_row_id: Number | None = None
    equality_ids: tuple[NumberedId, ...] | None = None
    referenced_data_file: str | None = None
    content_offset: Number | None = None
    content_size_in_bytes: Number | None = None
    column_sizes: ListedNumbers | None = None
    value_counts: ListedNumbers | None = None
    null_value_counts: ListedNumbers | None = None
    nan_value_counts: ListedNumbers | None = None
    lower_bounds: ListedValues | None = None
    upper_bounds: ListedValues | None = None
    key_metadata: str | None = None

    def __repr__(self) -> str:  # the key metadata holds a key
        return f"ListedFile({self.file_path!r})"


_CONTENTS: Final = {
    "data": DataFileContent.DATA,
    "position-deletes": DataFileContent.POSITION_DELETES,
    "equality-deletes": DataFileContent.EQUALITY_DELETES,
}
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_COUNTS: Final = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS: Final = ("lower_bounds", "upper_bounds")
_AS_LISTED: Final = frozenset(ListedFile.__struct_fields__) - {
    "content",
    "file_format",
    "key_metadata",
    "partition",
    *_COUNTS,
    *_BOUNDS,
}
"""The fields of a file with the same form in a service's list and in a manifest."""

_OF_ROWS: Final = frozenset({DataFileContent.DATA})
_OF_DELETES: Final = frozenset(DataFileContent) - _OF_ROWS
_HASHED_AS_THEY_ARE: Final = frozenset((str, int, type(None)))
"""The JSON types for which equal values have the same meaning."""

_HEXADECIMAL: Final = re.compile(r"(?:[0-9A-Fa-f]{2})*")


def _key_metadata(listed: ListedFile) -> bytes | None:
    """The key metadata of a file, from hexadecimal digits."""
    if listed.key_metadata is not None and not _HEXADECIMAL.fullmatch(listed.key_metadata):
        raise _invalid(listed, "with key metadata that are no hexadecimal digits")
    return None if listed.key_metadata is None else bytes.fromhex(listed.key_metadata)


class ListedReader:
    """Converts the listed files of a service, by the specs of the table, with the statistics that were asked for."""

    def __init__(self, asked: ScanPlanRequest) -> None:
        metadata, schema = asked.metadata, asked.schema
        schemas = list(metadata.schemas)
        wanted = map(schema.find_field, statistics_names(schema) if asked.statistics else ())
        self._statistics: Mapping[int, IcebergType] = {each.field_id: each.field_type for each in wanted}
        self._types: Mapping[int, list[tuple[int, IcebergType]]] = {
            spec.spec_id: [(each.field_id, each.field_type) for each in spec.partition_type(schema, schemas).fields]
            for spec in metadata.partition_specs
        }

    def data_files(self, listed: Sequence[ListedFile]) -> list[DataFile]:
        """Data files. Raises ``InvalidMetadata``."""
        return self._files(listed, of_rows=True)

    def delete_files(self, listed: Sequence[ListedFile]) -> list[DataFile]:
        """Delete files. Raises ``InvalidMetadata``."""
        return self._files(listed, of_rows=False)

    def _files(self, listed: Sequence[ListedFile], *, of_rows: bool) -> list[DataFile]:
        """Data files, converted column by column."""
        columns: dict[str, Iterable[Any]] = {
            "content": _contents(listed, of_rows),
            "file_format": map(str.lower, [each.file_format for each in listed]),
            "partition": self._partitions(listed),
            "key_metadata": map(_key_metadata, listed),
            **{name: map(attrgetter(name), listed) for name in _AS_LISTED},
        }
        if self._statistics:
            found = [self._of_columns(each) for each in listed]
            columns |= {name: [each.get(name, {}) for each in found] for name in (*_COUNTS, *_BOUNDS)}
        return files_of_columns(len(listed), columns)

    def _of_columns(self, listed: ListedFile) -> dict[str, Any]:
        """The statistics of the wanted fields."""
        found: dict[str, Any] = {
            name: {key: value for key, value in _pairs(listed, given) if key in self._statistics}
            for name in _COUNTS
            if (given := getattr(listed, name)) is not None
        }
        return found | dict(self._bounds(listed))

    def _bounds(self, listed: ListedFile) -> Iterator[tuple[str, Mapping[int, bytes]]]:
        """Encoded bounds. Services write them as JSON values of the column's type or, like Java, as hexadecimal digits.

        The unambiguous bounds of a file show the form of all its bounds; a file with only ambiguous bounds gets no
        bounds.
        """
        given = {name: _pairs(listed, getattr(listed, name)) for name in _BOUNDS if getattr(listed, name) is not None}
        wanted = [
            (name, key, self._statistics[key], value)
            for name, pairs in given.items()
            for key, value in pairs
            if key in self._statistics and value is not None
        ]
        forms = {_is_encoded(kind, value) for _, _, kind, value in wanted} - {None}
        if not forms:
            return
        if len(forms) > 1:
            raise _invalid(listed, "with bounds of columns in two forms")
        read = _decoded if True in forms else _encoded
        try:
            for name in given:
                yield name, {key: read(kind, value) for each, key, kind, value in wanted if each == name}
        except (InvalidArgument, ValueError) as error:
            raise _invalid(listed, f"with a bound that cannot be: {error}") from error

    def _partitions(self, listed: Sequence[ListedFile]) -> Sequence[tuple[Any, ...]]:
        """The partition of each file."""
        specs = [each.spec_id for each in listed]
        if len(set(specs)) == 1:
            return self._partitions_of(specs[0], listed)
        found: list[tuple[Any, ...]] = [()] * len(listed)
        by_spec: dict[int, list[int]] = {}
        for row, spec_id in enumerate(specs):
            by_spec.setdefault(spec_id, []).append(row)
        for spec_id, rows in by_spec.items():
            for row, partition in zip(rows, self._partitions_of(spec_id, [listed[row] for row in rows]), strict=True):
                found[row] = partition
        return found

    def _partitions_of(self, spec_id: int, listed: Sequence[ListedFile]) -> Sequence[tuple[Any, ...]]:
        """The partition of each file of one spec.

        Only partitions in unusual forms, and damaged ones, are checked file by file.
        """
        kinds = [kind for _, kind in self._types.get(spec_id, ())]
        given: list[Any] = [each.partition for each in listed]
        if set(map(type, given)) != {tuple} or set(map(len, given)) != {len(kinds)} or not kinds:
            given = [self._given(each) for each in listed]
        # True equals 1, and 0.0 equals -0.0; lists have no hash.
        alike = set(map(type, chain.from_iterable(given))) <= _HASHED_AS_THEY_ARE
        distinct = list(set(given)) if alike else given
        try:
            made = _partitions(kinds, distinct)
        except InvalidArgument:
            for each, one in zip(listed, given, strict=True):
                _check_partition(each, kinds, one)
            raise
        # Files of one partition share its tuple, because each tuple costs the garbage collector time.
        return list(map(dict(zip(distinct, made, strict=True)).__getitem__, given)) if alike else made

    def _given(self, listed: ListedFile) -> tuple[Any, ...]:
        """The values of a partition in JSON, one for each field of its spec."""
        types = self._types.get(listed.spec_id)
        if types is None:
            raise _invalid(listed, f"with partition spec {listed.spec_id}, which the table has not")
        given = listed.partition
        values = tuple(given.get(str(number)) for number, _ in types) if isinstance(given, dict) else given
        if len(values) != len(types):
            raise _invalid(listed, f"with {len(values)} partition values in place of {len(types)}")
        return values


def statistics_names(schema: Schema) -> list[str]:
    """The names of the columns with statistics, without ambiguous ones."""
    found = ((number, schema.find_type(number), schema.find_column_name(number)) for number in schema.field_ids)
    return [
        name
        for number, kind, name in found
        if name is not None and isinstance(kind, PrimitiveType) and _means(schema, name, number)
    ]


def _means(schema: Schema, name: str, number: int) -> bool:
    """Whether a dotted name refers to this column and to no other."""
    try:
        return schema.find_field(name).field_id == number
    except InvalidArgument:
        return False


def _partitions(kinds: Sequence[IcebergType], given: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    """Tuples of internal values from tuples of JSON values. Raises ``InvalidArgument``."""
    columns = [_values(kind, column) for kind, column in zip(kinds, zip(*given, strict=True), strict=True)]
    return list(zip(*columns, strict=True)) if columns else given


def _values(kind: IcebergType, given: Sequence[Any]) -> list[Any]:
    """The internal values of one type from JSON. Raises ``InvalidArgument``.

    Equal strings and integers are converted once.
    """
    if isinstance(kind, FloatType | DoubleType) or not set(map(type, given)) <= _HASHED_AS_THEY_ARE:
        return [_value(kind, value) for value in given]
    known = {value: _value(kind, value) for value in set(given)}
    return list(map(known.__getitem__, given))


def _check_partition(listed: ListedFile, kinds: Sequence[IcebergType], values: Sequence[Any]) -> None:
    try:
        for kind, value in zip(kinds, values, strict=True):
            _value(kind, value)
    except InvalidArgument as error:
        raise _invalid(listed, f"with a partition that cannot be: {error.message}") from error


def _contents(listed: Sequence[ListedFile], of_rows: bool) -> list[DataFileContent | None]:
    """The content of each file.

    Raises ``InvalidMetadata`` for an unknown content, for a delete file among data files, and for a data file among
    delete files.
    """
    contents = [_CONTENTS.get(each.content) for each in listed]
    sizes = [each.file_size_in_bytes for each in listed]
    if not set(contents) <= (_OF_ROWS if of_rows else _OF_DELETES) or min(sizes, default=0) < 0:
        for each in listed:
            _check(each, of_rows)
    return contents


def _check(listed: ListedFile, of_rows: bool) -> None:
    content = _CONTENTS.get(listed.content)
    if content is None or listed.file_size_in_bytes < 0:
        stated = f"as '{listed.content[:40]}' of {listed.file_size_in_bytes} bytes"
        raise _invalid(listed, f"{stated}, which cannot be")
    if of_rows and content is not DataFileContent.DATA:
        raise _invalid(listed, "as a file of rows, and as one of deletes")
    if not of_rows and content is DataFileContent.DATA:
        raise _invalid(listed, "as one of deletes, though it is a file of rows")


def _value(kind: IcebergType, value: Any) -> Any:
    if isinstance(kind, FloatType | DoubleType) and isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]  # as Java writes them
    return value_from_json(kind, value)


def _invalid(listed: ListedFile, reason: str) -> InvalidMetadata:
    """The error for an invalid file of a service's list."""
    location = without_userinfo(listed.file_path)[:300]
    return InvalidMetadata(f"the service lists {location} {reason}", location=location)


def _pairs(listed: ListedFile, given: ListedNumbers | ListedValues) -> list[tuple[int, Any]]:
    if len(given.keys) != len(given.values):
        raise _invalid(listed, f"with {len(given.values)} statistics of {len(given.keys)} columns")
    return list(zip(given.keys, given.values, strict=True))


def _is_encoded(kind: IcebergType, value: Any) -> bool | None:
    """Whether a bound is bytes in hexadecimal digits instead of a value; None if it is ambiguous."""
    if not isinstance(value, str) or not _HEXADECIMAL.fullmatch(value):
        return False
    return None if isinstance(kind, StringType | BinaryType | FixedType | DecimalType) else True


def _decoded(kind: IcebergType, value: Any) -> bytes:
    data = bytes.fromhex(value)
    value_from_bytes(kind, data)  # raises for an invalid value of the type
    return data


def _encoded(kind: IcebergType, value: Any) -> bytes:
    return value_to_bytes(kind, _value(kind, value))
