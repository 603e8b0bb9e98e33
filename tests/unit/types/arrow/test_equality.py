"""Numbers of rows, the same for equal rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from icefield.types.arrow.equality import row_numbers

COLUMNS = {
    "strings": (pa.string(), ["a", None, "b", "a", None, ""]),
    "numbers close together": (pa.int64(), [3, None, 4, 3, None, 0]),
    "numbers far apart": (pa.int64(), [2**62, None, -(2**62), 2**62, None, 0]),
    "bits of floats": (pa.float64(), [0.0, None, -0.0, 0.0, None, 1.0]),
    "structs": (pa.struct({"x": pa.int64()}), [{"x": 1}, None, {"x": None}, {"x": 1}, None, {"x": 0}]),
    "lists": (pa.list_(pa.string()), [["a"], None, [None], ["a"], None, []]),
    "maps": (pa.map_(pa.string(), pa.int64()), [[("a", 1)], None, [("a", None)], [("a", 1)], None, []]),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("rows", [range(6), (0, 2, 3, 5)], ids=["with nulls", "without nulls"])
def test_equal_values_have_one_number_and_null_has_its_own(name: str, rows: Any) -> None:
    kind, values = COLUMNS[name]
    groups = [[0, 1, 2, 0, 1, 3][row] for row in rows]
    column = pa.array([values[row] for row in rows], kind)
    found = row_numbers([column], len(column)).tolist()
    assert [[a == b for a in found] for b in found] == [[a == b for a in groups] for b in groups]


def test_rows_are_equal_if_all_their_columns_are() -> None:
    texts, numbers = pa.array(["a", "a", None, None, "a"]), pa.array([1, None, 1, None, 1])
    found = row_numbers([texts, numbers], 5).tolist()
    assert len(set(found)) == 4
    assert found[0] == found[4]
    assert set(row_numbers([], 3).tolist()) == {0}
