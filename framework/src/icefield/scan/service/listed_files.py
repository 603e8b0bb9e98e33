"""Conversion of the files that a service lists in JSON to data files, with the same checks as for manifests."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa

from icefield.abc import ListedFile, ListedNumbers, ListedValues
from icefield.base.secrets import without_userinfo
from icefield.errors import InvalidArgument, InvalidMetadata
from icefield.expressions import AlwaysTrue, BooleanExpression, Residuals
from icefield.manifest import DataFile, DataFileContent, files_of_columns
from icefield.manifest.columns import struct_array
from icefield.metadata import TableMetadata
from icefield.partitioning import PartitionSpec
from icefield.schema import Schema
from icefield.types import BinaryType, DecimalType, DoubleType, FixedType, FloatType, IcebergType, StringType
from icefield.types.values import value_from_bytes, value_from_json, value_to_bytes
from icefield.types.values.arrow import to_arrow_array

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
        raise invalid_listing(listed, "with key metadata that are no hexadecimal digits")
    return None if listed.key_metadata is None else bytes.fromhex(listed.key_metadata)


class ListedReader:
    """Converts the listed files of a service, by the specs of a table.

    ``statistics``: the types of the fields with column statistics, by id.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        schema: Schema,
        row_filter: BooleanExpression,
        statistics: Mapping[int, IcebergType],
    ) -> None:
        schemas = list(metadata.schemas)
        self._statistics = statistics
        self._filter = row_filter
        self._schema = schema
        self._specs: Mapping[int, PartitionSpec] = {spec.spec_id: spec for spec in metadata.partition_specs}
        self._types: Mapping[int, list[tuple[int, IcebergType]]] = {
            spec.spec_id: [(each.field_id, each.field_type) for each in spec.partition_type(schema, schemas).fields]
            for spec in metadata.partition_specs
        }
        self._residuals: dict[int, Residuals] = {}

    def data_files(self, listed: Sequence[ListedFile]) -> list[DataFile]:
        """Data files. Raises ``InvalidMetadata``."""
        return self._files(listed, of_rows=True)

    def delete_files(self, listed: Sequence[ListedFile]) -> list[DataFile]:
        """Delete files. Raises ``InvalidMetadata``."""
        return self._files(listed, of_rows=False)

    def residual(self, file: DataFile) -> BooleanExpression:
        """The residual filter for the rows of a file."""
        if isinstance(self._filter, AlwaysTrue):
            return self._filter
        found = self._residuals.get(file.spec_id)
        if found is None:
            found = self._residuals[file.spec_id] = Residuals(self._specs[file.spec_id], self._schema, self._filter)
        return found.of(file.partition)

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

    def partition_array(self, spec_id: int, partitions: Sequence[tuple[Any, ...]]) -> pa.StructArray:
        """Partition tuples of one spec in columns."""
        kinds = [kind for _, kind in self._types[spec_id]]
        children = [to_arrow_array(kind, [each[at] for each in partitions]) for at, kind in enumerate(kinds)]
        fields = [pa.field(str(at), child.type) for at, child in enumerate(children)]
        return struct_array(children, fields, len(partitions))

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
            raise invalid_listing(listed, "with bounds of columns in two forms")
        read = _decoded if True in forms else _encoded
        try:
            for name in given:
                yield name, {key: read(kind, value) for each, key, kind, value in wanted if each == name}
        except (InvalidArgument, ValueError) as error:
            raise invalid_listing(listed, f"with a bound that cannot be: {error}") from error

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
            raise invalid_listing(listed, f"with partition spec {listed.spec_id}, which the table has not")
        given = listed.partition
        values = tuple(given.get(str(number)) for number, _ in types) if isinstance(given, dict) else given
        if len(values) != len(types):
            raise invalid_listing(listed, f"with {len(values)} partition values in place of {len(types)}")
        return values


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
        raise invalid_listing(listed, f"with a partition that cannot be: {error.message}") from error


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
        raise invalid_listing(listed, f"{stated}, which cannot be")
    if of_rows and content is not DataFileContent.DATA:
        raise invalid_listing(listed, "as a file of rows, and as one of deletes")
    if not of_rows and content is DataFileContent.DATA:
        raise invalid_listing(listed, "as one of deletes, though it is a file of rows")


def _value(kind: IcebergType, value: Any) -> Any:
    if isinstance(kind, FloatType | DoubleType) and isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]  # as Java writes them
    return value_from_json(kind, value)


def invalid_listing(listed: ListedFile, reason: str) -> InvalidMetadata:
    """The error for an invalid file of a service's list."""
    location = without_userinfo(listed.file_path)[:300]
    return InvalidMetadata(f"the service lists {location} {reason}", location=location)


def _pairs(listed: ListedFile, given: ListedNumbers | ListedValues) -> list[tuple[int, Any]]:
    if len(given.keys) != len(given.values):
        raise invalid_listing(listed, f"with {len(given.values)} statistics of {len(given.keys)} columns")
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
