"""The names of operations in streams of changes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument
from icefield.transaction.change_stream.kinds import change_kinds


@pytest.mark.parametrize(
    ("column", "kinds"),
    [
        (pa.array(["INSERT", "update_before", "Update_After", "DELETE"]), [0, 1, 2, 3]),
        (pa.array(["+I", "-U", "+U", "-D"], pa.large_string()), [0, 1, 2, 3]),
        (pa.array(["c", "r", "u", "d"]).dictionary_encode(), [0, 0, 2, 3]),
        (pa.array(["insert", "update_preimage", "update_postimage", "delete"]), [0, 1, 2, 3]),
        (pa.array([3, 0], pa.uint8()), [3, 0]),
        (pa.chunked_array([["+I"], ["-D"]]), [0, 3]),
        (pa.array([], pa.string()), []),
    ],
)
def test_names_and_numbers_are_understood(column: Any, kinds: list[int]) -> None:
    assert change_kinds(column).tolist() == kinds


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array(["+I", None]), "is null"),
        (pa.array(["+I", "merge"]), "'merge' is no operation"),
        (pa.array([0, 4]), "not 4"),
        (pa.array([0, -1]), "not -1"),
        (pa.array([1.0]), "strings or numbers, not double"),
    ],
)
def test_what_is_no_operation_is_refused(column: Any, reason: str) -> None:
    with pytest.raises(InvalidArgument, match=reason):
        change_kinds(column)
