"""Keys that many delete files repeat delete the same rows as if each file were looked through by itself."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from delete_files import commit, equality_deletes, write_file
from hypothesis import given
from hypothesis import strategies as st
from icefield.manifest import DataFile
from icefield.scan.deletes import equality, keys, store
from icefield.scan.deletes.keys import KeySet, hash_keys
from icefield.types import DoubleType, IcebergType, LongType, StringType
from tables import ids, new_table

COLUMNS: dict[str, tuple[IcebergType, pa.DataType, list[Any]]] = {
    "n": (LongType(), pa.int64(), [1, 2, None]),
    "s": (StringType(), pa.string(), ["a", "b", None]),
    "x": (DoubleType(), pa.float64(), [0.0, -0.0, math.nan, 1.5, None]),
}
SETS = [("n",), ("n", "s"), ("x",), ("n", "x")]


def alike(value: Any) -> Any:
    """A value for comparing keys: floats are compared by their bits, and all NaNs are equal."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    return value


def key_of(row: dict[str, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(alike(row[name]) for name in names)


rows_of = st.fixed_dictionaries({name: st.sampled_from(values) for name, (_, _, values) in COLUMNS.items()})
data = st.tuples(st.just("data"), st.sampled_from("pq"), st.lists(rows_of, min_size=1, max_size=3))
deletes = st.tuples(
    st.just("deletes"), st.sampled_from(["p", "q", None]), st.sampled_from(SETS), st.lists(rows_of, max_size=4)
)
commits = st.lists(st.lists(data | deletes, min_size=1, max_size=4), min_size=1, max_size=6)


@pytest.mark.slow
@given(commits, st.sampled_from([store.HELD_BYTES, 200]))
def test_rows_are_deleted_by_newer_files_of_their_partition_and_by_global_ones(given_commits, held) -> None:
    schema = pa.schema([("id", pa.int64()), ("part", pa.string()), *((n, kind) for n, (_, kind, _) in COLUMNS.items())])
    table = new_table(schema=schema, **{"format-version": "2"})
    unpartitioned = table.spec().spec_id
    with table.update_spec() as update:
        update.add_identity("part")
    spec_id = table.spec().spec_id
    written: list[tuple[int, int, str, dict[str, Any]]] = []
    deleted: list[tuple[int, str | None, tuple[str, ...], set[tuple[Any, ...]]]] = []
    for number, parts in enumerate(given_commits):
        files: list[DataFile] = []
        for kind, part, *rest in parts:
            place = {"partition": (), "spec_id": unpartitioned}
            if part is not None:
                place = {"partition": (part,), "spec_id": spec_id}
            if kind == "data":
                rows = [{"id": len(written) + at, "part": part, **row} for at, row in enumerate(rest[0])]
                written += [(row["id"], number, part, row) for row in rows]
                files.append(write_file(table, table.schema(), pa.Table.from_pylist(rows, schema), "parquet", **place))
            else:
                names, rows = rest
                deleted.append((number, part, names, {key_of(row, names) for row in rows}))
                chosen = [{name: row[name] for name in names} for row in rows]
                files.append(equality_deletes(table, names, chosen, **place))
        commit(table, *files)
    expected = [
        id_
        for id_, age, part, row in written
        if not any(
            newer > age and where in (None, part) and key_of(row, names) in gone
            for newer, where, names, gone in deleted
        )
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "HELD_BYTES", held)
        patch.setattr(store.DeleteStore.__init__, "__defaults__", (held,))
        assert ids(table) == expected


few = st.lists(st.tuples(rows_of, st.integers(0, 5)), max_size=12)


@given(few, few, st.lists(rows_of, min_size=1, max_size=12), st.sets(st.integers(0, 5)), st.integers(1, 8))
def test_a_set_has_each_key_once_and_finds_those_of_the_files_that_apply(first, second, looked_up, files, hashes):
    types = [kind for kind, _, _ in COLUMNS.values()]

    def columns_of(rows: list[dict[str, Any]]) -> list[pa.Array]:
        return [pa.array([row[name] for row in rows], kind) for name, (_, kind, _) in COLUMNS.items()]

    def coarse(columns: Any, types: Any) -> Any:
        # Many different keys have the same hash.
        return (hash_keys(columns, types) % np.uint64(hashes)) << np.uint64(60)

    applying = np.zeros(6, bool)
    applying[list(files)] = True
    columns = columns_of(looked_up)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "hash_keys", coarse)
        one, other = (
            KeySet(columns_of([row for row, _ in rows]), types, np.array([file for _, file in rows], np.int32))
            for rows in (first, second)
        )
        both = one.united(other)
        for made, held in ((one, first), (other, second), (both, first + second)):
            pairs = {(key_of(row, tuple(COLUMNS)), file) for row, file in held}
            assert len(made) == len(pairs)
            assert len(made.columns[0]) == len({key for key, _ in pairs})
            for mask, wanted in ((None, set(range(6))), (applying, files)):
                gone = {key for key, file in pairs if file in wanted}
                found = made.matches(coarse(columns, types), columns, mask)
                expected = [at for at, row in enumerate(looked_up) if key_of(row, tuple(COLUMNS)) in gone]
                assert sorted(found.tolist()) == expected


def test_a_file_that_is_listed_twice_is_read_once() -> None:
    table = new_table(schema=pa.schema([("id", pa.int64())]), **{"format-version": "2"})
    files = [equality_deletes(table, ["id"], [{"id": n}]) for n in range(3)]
    held = equality.EqualityDeletes(table.io, table.schema(), (1,), None, store.HELD_BYTES)
    for listed, gone in (([files[0], files[0], files[1]], [0, 1]), ([files[2], files[0]], [0, 2]), (files, [0, 1, 2])):
        lookup = held.lookup(listed)
        assert lookup is not None
        batch = pa.record_batch({"id": pa.array([0, 1, 2, 3])}, schema=pa.schema([("id", pa.int64())]))
        assert sorted(lookup.matches(table.schema(), batch).tolist()) == gone
