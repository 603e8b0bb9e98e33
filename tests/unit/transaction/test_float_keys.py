"""Floats as keys, judged by a plain model: NaN equals NaN, -0.0 equals 0.0, and null equals nothing."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.catalog import Table
from icefield.errors import InvalidArgument
from tables import new_table

VALUES = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1.0, 100.0, None]
KEY = st.tuples(st.sampled_from(VALUES), st.sampled_from(["a", "b"]))
FILES = st.lists(st.lists(KEY, max_size=4), max_size=3)
FORMATS = ["parquet", "orc", "avro"]
MODES = ["copy-on-write", "merge-on-read"]
KINDS = [pa.float32(), pa.float64()]
SPECS: list[list[str] | None] = [None, ["k"], ["s"]]


def schema(kind: pa.DataType) -> pa.Schema:
    return pa.schema([("k", kind), ("s", pa.string()), ("v", pa.int64())])


def settled(key: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """A key in a form that Python compares by the rule; None for a key that equals nothing."""
    if None in key:
        return None
    return tuple("nan" if value != value else value for value in key)


def rows(keys: list[tuple[Any, str]], first: int, kind: pa.DataType) -> pa.Table:
    columns = [[key[0] for key in keys], [key[1] for key in keys], list(range(first, first + len(keys)))]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema(kind), strict=True)], schema=schema(kind))


def table_of(files: list[list[tuple[Any, str]]], kind: pa.DataType, spec: Any, mode: str, fmt: str) -> Table:
    properties = {"write.format.default": fmt, "write.merge.mode": mode, "write.delete.mode": mode}
    table = new_table(spec, schema=schema(kind), properties=properties)
    for number, keys in enumerate(files):
        if keys:
            table.append(rows(keys, 100 * number, kind))
    return table


def held(table: Table, row_filter: str = "true") -> list[str]:
    return sorted(map(repr, (tuple(row.values()) for row in table.scan(row_filter).to_arrow().to_pylist())))


def shown(keys: list[tuple[Any, str]], values: list[int]) -> list[str]:
    return sorted(repr((*key, value)) for key, value in zip(keys, values, strict=True))


@settings(max_examples=240, deadline=None)
@given(
    FILES,
    st.lists(KEY, min_size=1, max_size=4),
    st.sampled_from(KINDS),
    st.sampled_from(SPECS),
    st.sampled_from(MODES),
    st.sampled_from(FORMATS),
    st.booleans(),
    st.booleans(),
)
def test_upsert_and_merge_do_what_a_dict_of_keys_does(files, given_keys, kind, spec, mode, fmt, composite, merges):
    table = table_of(files, kind, spec, mode, fmt)
    names = ["k", "s"] if composite else ["k"]
    width = len(names)
    settled_keys = [settled(key[:width]) for key in given_keys]
    known = [key for key in settled_keys if key is not None]
    source = rows(given_keys, 1000, kind)
    old = [(key, 100 * number + at) for number, keys in enumerate(files) for at, key in enumerate(keys)]
    if len(set(known)) < len(known) and not merges:
        with pytest.raises(InvalidArgument, match="more than once"):
            table.upsert(source, names)
        assert held(table) == shown([key for key, _ in old], [value for _, value in old])
        return
    if len(set(known)) < len(known):
        return
    of_key = {key: at for at, key in enumerate(settled_keys) if key is not None}
    result_keys, result_values, met = [], [], set()
    for key, value in old:
        at = of_key.get(settled(key[:width]))
        met.add(at)
        result_keys.append(key if at is None else given_keys[at])
        result_values.append(value if at is None else 1000 + at)
    for at, key in enumerate(given_keys):
        if at not in met:
            result_keys.append(key)
            result_values.append(1000 + at)
    if merges:
        table.merge(source, names).when_matched_update_all().when_not_matched_insert_all().commit()
    else:
        table.upsert(source, names)
    assert held(table) == shown(result_keys, result_values)


FILTERS = {
    "k is nan": lambda k: k is not None and k != k,
    "k is not nan": lambda k: k is None or k == k,
    "k = 0.0": lambda k: k == 0.0,
    "k in (-0.0, 100)": lambda k: k in (0.0, 100.0) if k is not None else False,
    "k not in (-0.0, 100)": lambda k: k is not None and k not in (0.0, 100.0),
    "k != -0.0": lambda k: k is not None and k != 0.0,
    "k >= -0.0 or k is nan": lambda k: k is not None and (k >= 0.0 or k != k),
    "k < 0.0": lambda k: k is not None and k < 0.0,
}


@settings(max_examples=150, deadline=None)
@given(
    FILES,
    st.sampled_from(sorted(FILTERS)),
    st.sampled_from(KINDS),
    st.sampled_from(SPECS),
    st.sampled_from(MODES),
    st.sampled_from(FORMATS),
)
def test_filters_and_deletes_hold_both_zeros_equal_in_every_layout(files, row_filter, kind, spec, mode, fmt):
    table = table_of(files, kind, spec, mode, fmt)
    old = [(key, 100 * number + at) for number, keys in enumerate(files) for at, key in enumerate(keys)]
    match = [FILTERS[row_filter](key[0]) for key, _ in old]

    def those(wanted: bool) -> list[str]:
        chosen = [one for one, matches in zip(old, match, strict=True) if matches is wanted]
        return shown([key for key, _ in chosen], [value for _, value in chosen])

    assert held(table, row_filter) == those(True)
    table.delete(row_filter)
    assert held(table) == those(False)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("old", [[[1.0, math.nan]], [[math.nan], [1.0]], [[math.nan, 5.0], [0.5, 200.0]]])
@pytest.mark.parametrize("others", [[], [0.5], [100.0]])
def test_a_nan_is_updated_whatever_other_keys_are_given(mode, old, others):
    table = table_of([[(key, "a") for key in keys] for keys in old], pa.float64(), None, mode, "parquet")
    table.upsert(rows([(key, "a") for key in [math.nan, *others]], 1000, pa.float64()), ["k"])
    assert table.scan("k is nan").to_arrow()["v"].to_pylist() == [1000]
