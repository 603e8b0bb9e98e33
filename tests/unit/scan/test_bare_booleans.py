"""Filters that name a boolean column by itself: three-valued logic as in SQL, over rows, files and partitions."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidExpression
from icefield.expressions import parse
from tables import new_table

SCHEMA = pa.schema(
    [("n", pa.int64()), ("b", pa.bool_()), ("s", pa.struct([("c", pa.bool_())])), ("not", pa.bool_())],
)
VALUES = (True, False, None)
ROWS = [
    {"n": number, "b": b, "s": None if c == "no struct" else {"c": c}, "not": quoted}
    for number, (b, c, quoted) in enumerate(itertools.product(VALUES, (*VALUES, "no struct"), VALUES))
]
LEAVES: dict[str, Any] = {
    "b": lambda row: row["b"],
    "s.c": lambda row: None if row["s"] is None else row["s"]["c"],
    '"not"': lambda row: row["not"],
    "n > 5": lambda row: row["n"] > 5,
}


def negated(value: bool | None) -> bool | None:
    return None if value is None else not value


FILTERS = st.recursive(
    st.sampled_from([(text, LEAVES[text]) for text in LEAVES]),
    lambda inner: (
        inner.map(lambda one: (f"not ({one[0]})", lambda row: negated(one[1](row))))
        | st.tuples(inner, inner).map(lambda two: (f"({two[0][0]}) and ({two[1][0]})", _both(two)))
        | st.tuples(inner, inner).map(lambda two: (f"({two[0][0]}) or ({two[1][0]})", _either(two)))
    ),
    max_leaves=5,
)


def _both(two: Any) -> Any:
    def holds(row: Any) -> bool | None:
        found = {two[0][1](row), two[1][1](row)}
        return False if False in found else None if None in found else True

    return holds


def _either(two: Any) -> Any:
    def holds(row: Any) -> bool | None:
        found = {two[0][1](row), two[1][1](row)}
        return True if True in found else None if None in found else False

    return holds


@pytest.fixture(scope="module", params=[None, ["b"]])
def table(request):
    table = new_table(request.param, schema=SCHEMA)
    for start in range(0, len(ROWS), 9):
        table.append(pa.Table.from_pylist(ROWS[start : start + 9], SCHEMA))
    return table


@settings(max_examples=200, deadline=None)
@given(FILTERS)
def test_a_boolean_column_by_itself_is_a_condition(table, case):
    text, holds = case
    wanted = [row["n"] for row in ROWS if holds(row) is True]
    assert sorted(table.scan(text).to_arrow()["n"].to_pylist()) == wanted
    assert table.scan(text).count() == len(wanted)
    assert sorted(table.scan(str(parse(text))).to_arrow()["n"].to_pylist()) == wanted


@pytest.mark.parametrize("text", ["n", "not n", "s", "n and b", "absent"])
def test_a_column_of_another_type_is_no_condition(table, text):
    with pytest.raises(InvalidExpression, match=f"{text.split()[-1 if 'not' in text else 0]}"):
        table.scan(text).to_arrow()


def test_rows_are_deleted_and_updated_where_a_boolean_column_holds():
    table = new_table(schema=SCHEMA)
    table.append(pa.Table.from_pylist(ROWS, SCHEMA))
    table.update("not b", {"n": -1})
    table.delete("b and s.c")
    left = [row for row in ROWS if not (row["b"] and row["s"] is not None and row["s"]["c"])]
    wanted = sorted(-1 if row["b"] is False else row["n"] for row in left)
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == wanted
