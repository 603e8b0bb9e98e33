"""The kinds of row changes, and their names in streams of changes."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import InvalidArgument

Kinds = npt.NDArray[np.int8]
"""A ``ChangeKind`` for each row."""


class ChangeKind(IntEnum):
    """The kind of a row change, numbered as in Flink."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3


_NAMES: Final[dict[str, ChangeKind]] = {
    # the changelog of the table format
    "insert": ChangeKind.INSERT,
    "update_before": ChangeKind.UPDATE_BEFORE,
    "update_after": ChangeKind.UPDATE_AFTER,
    "delete": ChangeKind.DELETE,
    # Delta Lake's change data feed
    "update_preimage": ChangeKind.UPDATE_BEFORE,
    "update_postimage": ChangeKind.UPDATE_AFTER,
    # Flink
    "+i": ChangeKind.INSERT,
    "-u": ChangeKind.UPDATE_BEFORE,
    "+u": ChangeKind.UPDATE_AFTER,
    "-d": ChangeKind.DELETE,
    # Debezium: create, read (of a snapshot), update, delete
    "c": ChangeKind.INSERT,
    "r": ChangeKind.INSERT,
    "u": ChangeKind.UPDATE_AFTER,
    "d": ChangeKind.DELETE,
    "i": ChangeKind.INSERT,
}
"""The accepted names in lower case; the case of a name does not matter."""

_MEANT: Final = np.array([*_NAMES.values()], np.int8)


def change_kinds(column: Any) -> Kinds:
    """The kinds in a column of strings, of dictionaries of strings, or of Flink's numbers.

    Raises ``InvalidArgument`` for a null and for an unknown name or number.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count:
        raise InvalidArgument("a change does not say what it is: its operation is null")
    if pa.types.is_integer(column.type):
        numbers = column.to_numpy()
        if len(numbers) and (numbers.min() < 0 or numbers.max() > ChangeKind.DELETE):
            wrong = numbers.min() if numbers.min() < 0 else numbers.max()
            raise InvalidArgument(f"operations of changes have the numbers 0 to 3, not {wrong}")
        kinds: Kinds = numbers.astype(np.int8)
        return kinds
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise InvalidArgument(f"operations of changes are strings or numbers, not {column.type}")
    places = pc.index_in(pc.utf8_lower(column.cast(pa.string())), value_set=pa.array([*_NAMES], pa.string()))
    if places.null_count:
        unknown = column.filter(places.is_null())[0].as_py()
        raise InvalidArgument(
            f"'{unknown:.40}' is no operation of a change; there are INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE"
        )
    named: Kinds = _MEANT[places.to_numpy()]
    return named
