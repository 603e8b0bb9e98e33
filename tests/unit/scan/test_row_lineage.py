"""Row lineage: each row of a table of version 3 has an id of its own that it keeps, and states its last change."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from icefield import Table
from icefield.errors import InvalidFile, UnsupportedFeature
from icefield.expressions import parse
from icefield.partitioning import UNPARTITIONED
from icefield.plugins import Plugins
from icefield.scan import FileScanTask, ScanContext, read_tasks
from icefield.schema import Schema, schema_to_arrow
from icefield.storage import FileIO, LocationProvider
from icefield.types import NestedField
from icefield.types.reserved import LAST_UPDATED_SEQUENCE_NUMBER, POS, ROW_ID
from icefield.writing import WriteContext, write_batches
from tables import entries, manifests, memory_catalog, new_table, rows

IO = FileIO(Plugins.installed())
COLUMNS = Schema(NestedField(1, "n", "int", required=True), NestedField(2, "t", "string"))
FORMATS = ("parquet", "avro", "orc")
SMALL = {
    "write.parquet.row-group-size-bytes": "10000",
    "write.avro.block-size-bytes": "4096",
    "write.orc.stripe-size-bytes": "8192",
}
BOTH = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
LINEAGE = ("_row_id", "_last_updated_sequence_number")


@pytest.fixture(params=FORMATS)
def write(request: pytest.FixtureRequest) -> Callable[..., FileScanTask]:
    """Writes rows as one file of a format, first row id 1,000 and data sequence number 7 by default."""

    def make(given: list[dict[str, Any]], *, stored: bool = False, first: int | None = 1_000) -> FileScanTask:
        location = f"memory://lineage/{request.node.name}"
        context = WriteContext(
            COLUMNS, UNPARTITIONED, LocationProvider.of(location, {}), IO, request.param, properties=SMALL, workers=1
        )
        if stored:
            context = context.with_row_lineage()
        (file,) = write_batches(context, pa.Table.from_pylist(given, schema=schema_to_arrow(context.schema)))
        return FileScanTask(replace(file, first_row_id=first), data_sequence_number=7)

    return make


def read(tasks: list[FileScanTask], *metadata: NestedField, names: tuple[str, ...] = ("n",)) -> list[tuple[Any, ...]]:
    context = ScanContext(COLUMNS, Schema(*(COLUMNS.select(*names).fields if names else ()), *metadata), IO)
    return [tuple(row.values()) for batch in read_tasks(tasks, context) for row in batch.to_pylist()]


@pytest.mark.spec("ROW-03", "ROW-04", "ROW-02", "RSV-09")
@pytest.mark.parametrize("text", ["n >= 0", "n < 700 or n > 3100", "n = 2345"])
def test_ids_follow_from_positions_under_splits_and_filters(write: Callable[..., FileScanTask], text: str) -> None:
    task = write([{"n": n, "t": str(n) * 5} for n in range(4_000)])
    filtered = FileScanTask(task.file, parse(text), data_sequence_number=7)
    size = task.file.file_size_in_bytes
    cuts = [0, *range(1_000, size, 3_000), size]
    expected = [n for n in range(4_000) if text == "n >= 0" or ("=" in text and n == 2345) or "or" in text]
    if "or" in text:
        expected = [n for n in expected if n < 700 or n > 3100]
    for tasks in ([filtered], [filtered.part(start, end - start) for start, end in pairwise(cuts)]):
        assert read(tasks, *BOTH) == [(n, 1_000 + n, 7) for n in expected]
        assert read(tasks, ROW_ID, names=()) == [(1_000 + n,) for n in expected]
        assert read(tasks, LAST_UPDATED_SEQUENCE_NUMBER, names=()) == [(7,)] * len(expected)
        assert read(tasks, POS, ROW_ID) == [(n, n, 1_000 + n) for n in expected]


@pytest.mark.spec("ROW-03", "ROW-04", "ROW-05")
def test_what_is_stored_with_a_row_goes_before_what_the_file_says(write: Callable[..., FileScanTask]) -> None:
    stored = [(5, 2), (None, None), (9, None), (None, 3)]
    given = [{"n": n, "t": "x", LINEAGE[0]: row_id, LINEAGE[1]: last} for n, (row_id, last) in enumerate(stored)]
    task = write(given, stored=True)
    assert read([task], *BOTH) == [(0, 5, 2), (1, 1_001, 7), (2, 9, 7), (3, 1_003, 3)]
    assert read([task], *reversed(BOTH), names=()) == [(2, 5), (7, 1_001), (7, 9), (3, 1_003)]


@pytest.mark.spec("ROW-05")
def test_a_file_without_a_first_row_id_states_nothing_whatever_it_holds(write: Callable[..., FileScanTask]) -> None:
    task = write([{"n": 1, "t": "x", LINEAGE[0]: 5, LINEAGE[1]: 2}], stored=True, first=None)
    assert read([task], *BOTH) == [(1, None, None)]


def test_files_of_one_schema_keep_their_own_first_ids(write: Callable[..., FileScanTask]) -> None:
    given = [{"n": n, "t": None} for n in range(3)]
    tasks = [write(given, first=10), write(given, first=None), write(given, first=20)]
    assert [row_id for _, row_id in read(tasks, ROW_ID)] == [10, 11, 12, None, None, None, 20, 21, 22]


def test_a_first_row_id_beyond_all_ids_is_an_error_and_no_wrong_id(write: Callable[..., FileScanTask]) -> None:
    with pytest.raises(InvalidFile, match="_row_id"):
        read([write([{"n": n, "t": None} for n in range(3)], first=2**63 - 2)], ROW_ID)


# -- tables


def lineage(table: Table, **scan: Any) -> dict[int, tuple[int, int]]:
    """The id and the last change of each row, by the column ``id``."""
    found = table.refresh().scan(selected_fields=("id", *LINEAGE), **scan).to_arrow().to_pylist()
    made = {row["id"]: (row[LINEAGE[0]], row[LINEAGE[1]]) for row in found}
    assert len(made) == len(found)
    return made


def table_of_version_3(format_name: str = "parquet", partition_spec: Any = None, **properties: str) -> Table:
    return new_table(
        partition_spec, properties={"format-version": "3", "write.format.default": format_name, **properties}
    )


@pytest.mark.spec("ROW-01", "ROW-06", "ROW-13")
@pytest.mark.parametrize("format_name", FORMATS)
def test_rows_keep_ids_and_last_changes_when_their_file_is_rewritten(format_name: str) -> None:
    table = table_of_version_3(format_name)
    table.append(rows(range(5)))
    table.append(rows(range(5, 10)))
    before = lineage(table)
    assert sorted(row_id for row_id, _ in before.values()) == list(range(10))
    assert [last for _, last in before.values()] == [before[0][1]] * 5 + [before[5][1]] * 5
    assert before[0][1] != before[5][1]
    table.delete("id = 2")
    assert lineage(table) == {id_: known for id_, known in before.items() if id_ != 2}
    with table.transaction() as tx:
        tx.delete("id = 3")
        tx.delete("id = 4")
    assert lineage(table) == {id_: known for id_, known in before.items() if id_ not in (2, 3, 4)}
    table.overwrite(rows([20]), "id = 7")
    after = lineage(table)
    assert after.pop(20)[0] not in {row_id for row_id, _ in before.values()}
    assert after == {id_: known for id_, known in before.items() if id_ not in (2, 3, 4, 7)}


@pytest.mark.spec("ROW-06", "ROW-13")
def test_an_upserted_row_keeps_its_id_and_states_of_its_change() -> None:
    table = table_of_version_3(partition_spec=["kind"])
    table.append(rows(range(6)))
    before = lineage(table)
    result = table.upsert(pa.concat_tables([rows([1], value=9.0), rows([2], "b"), rows([3]), rows([7])]), ["id"])
    assert (result.rows_updated, result.rows_inserted) == (2, 1)
    after = lineage(table)
    now = table.last_sequence_number
    assert after.pop(7) == (max(row_id for row_id, _ in after.values()) + 1, now) or after
    for id_ in (1, 2):  # changed in place, and moved to another partition
        assert after[id_] == (before[id_][0], now)
    for id_ in (0, 3, 4, 5):
        assert after[id_] == before[id_]


@pytest.mark.spec("ROW-05", "ROW-11")
def test_rows_from_before_the_upgrade_get_ids_with_the_first_commit_after_it() -> None:
    table = new_table()
    table.append(rows([1, 2]))
    table.delete("id = 2")
    table.transaction().upgrade_table_version(3).commit_transaction()
    assert lineage(table) == {1: (None, None)}
    table.append(rows([3]))
    first = lineage(table)
    assert None not in {row_id for row_id, _ in first.values()}
    assert len({row_id for row_id, _ in first.values()}) == 2
    table.append(rows([4, 5]))
    table.delete("id = 4")
    assert {id_: known for id_, known in lineage(table).items() if id_ in first} == first


def test_below_version_3_there_is_no_lineage() -> None:
    table = new_table()
    table.append(rows([1, 2]))
    table.delete("id = 1")
    assert lineage(table) == {2: (None, None)}
    (file,) = entries(table, manifests(table)[0]).data_files()
    assert ROW_ID.field_id not in file.column_sizes


def test_a_table_with_a_column_of_such_a_name_is_read_and_keeps_its_rows() -> None:
    schema = pa.schema([("id", pa.int64()), ("_row_id", pa.string())])
    table = memory_catalog().create_table("db.t", schema, properties={"format-version": "3"})
    table.append(pa.table({"id": [1, 2, 3], "_row_id": ["a", "b", "c"]}, schema=schema))
    for change in (
        lambda: table.delete("id = 2"),
        lambda: table.upsert(pa.table({"id": [3], "_row_id": ["z"]}, schema=schema), ["id"]),
    ):
        with pytest.raises(UnsupportedFeature, match="rename it"):
            change()
    assert table.refresh().scan("id > 1").to_arrow().to_pylist() == [
        {"id": 2, "_row_id": "b"},
        {"id": 3, "_row_id": "c"},
    ]
    with table.update_schema() as update:
        update.rename_column("_row_id", "name")
    table.delete("id = 2")
    assert lineage(table) == {1: (0, 1), 3: (2, 1)}


@pytest.mark.slow
@pytest.mark.spec("ROW-10", "ROW-13", "ROW-06")
@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_done_to_a_table_ids_are_unique_and_stay(seed: int) -> None:
    draw = random.Random(seed)
    table = table_of_version_3(
        draw.choice(FORMATS),
        draw.choice([None, ["bucket[2](id)"]]),
        **{"commit.manifest.min-count-to-merge": "3"},
    )
    known: dict[int, tuple[int, int, float]] = {}
    given_out: set[int] = set()
    for step in range(14):
        some = draw.sample(range(40), draw.randrange(1, 6))
        action = draw.choice(["append", "append", "delete", "upsert", "overwrite", "branch"])
        changed: set[int] = set()
        value = float(step)
        if action == "append":
            changed = set(some) - known.keys()
            table.append(rows(sorted(changed), value=value))
        elif action == "delete":
            table.delete(f"id in ({', '.join(map(str, some))})")
            known = {id_: row for id_, row in known.items() if id_ not in some}
        elif action == "upsert":
            table.upsert(rows(sorted(some), value=value), ["id"])
            changed = set(some)
        elif action == "branch":
            if table.refresh().current_snapshot() is None:
                continue
            name = f"b{step}"
            table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, name).commit()
            table.append(rows([1_000]), branch=name)
            of_branch = {row_id for row_id, _ in lineage(table, ref=name).values()}
            given_out |= of_branch
        else:
            table.overwrite(rows(sorted(some), value=value), f"id in ({', '.join(map(str, some))})")
            known = {id_: row for id_, row in known.items() if id_ not in some}
            changed = set(some)
        found = lineage(table)
        now = table.last_sequence_number
        assert set(found) == known.keys() | changed
        assert len({row_id for row_id, _ in found.values()}) == len(found)
        for id_, (row_id, last) in found.items():
            if id_ in known:
                assert row_id == known[id_][0], "a row keeps its id"
                assert last == (now if id_ in changed else known[id_][1])
            else:
                assert row_id not in given_out, "a new row has a new id"
                assert last == now
        given_out |= {row_id for row_id, _ in found.values()}
        known = {id_: (*pair, 0.0) for id_, pair in found.items()}
