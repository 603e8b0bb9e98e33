"""Appends between versions, plans as tables, and statistics of columns, from a service that plans."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from http_between import Answered, Asked, Between, Forward
from icefield import Catalog, Table, load_catalog
from icefield.errors import IcefieldError, InvalidMetadata
from icefield.toolkit import value_from_bytes
from icefield_rest_server import Settings, app
from rest_served import served, with_table

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("value", pa.float64()),
        ("day", pa.date32()),
        ("price", pa.decimal128(9, 2)),
        ("raw", pa.binary()),
        ("deep", pa.struct([("a", pa.int32())])),
        ("many", pa.list_(pa.int64())),
        ("with.dot", pa.bool_()),
    ]
)


def rows(first: int, count: int) -> pa.Table:
    made = [
        {
            "id": id_,
            "name": (None, "a", "café", "ff")[id_ % 4],
            "value": (float("nan"), None, 0.5, -1.0)[id_ % 4],
            "day": date(2024, 1, 1 + id_),
            "price": Decimal(id_) / 4,
            "raw": bytes([id_, 255]),
            "deep": {"a": id_},
            "many": [id_, None],
            "with.dot": id_ % 2 == 0,
        }
        for id_ in range(first, first + count)
    ]
    return pa.Table.from_pylist(made, schema=SCHEMA)


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with with_table(tmp_path_factory.mktemp("served"), SCHEMA) as (catalog, made):
        made.append(rows(0, 4))
        made.append(rows(4, 4))
        with made.update_spec() as update:
            update.add_identity("name")
            update.add_field("day", "month")
        made.append(rows(8, 8))
        made.delete("id in (1, 5, 9)")
        made.append(rows(16, 4))
        yield catalog


@pytest.fixture
def between(behind: Catalog) -> Iterator[Between]:
    with served(app(behind, Settings(max_plan_page=2))) as address, Between(address).open() as made:
        yield made


@pytest.fixture
def table(between: Between) -> Iterator[Table]:
    waits = {"rest.retry.num-retries": "1", "rest.retry.min-wait-ms": "1"}
    with load_catalog("test", type="rest", uri=between.url, **{"scan-planning-mode": "server"}, **waits) as catalog:
        yield catalog.load_table("db.t")


@pytest.fixture
def mine(behind: Catalog) -> Table:
    return behind.load_table("db.t")


def plans(between: Between) -> list[dict[str, Any]]:
    return [json.loads(each.body) for each in between.asked if each.path.endswith("/plan")]


def comparable(found: pa.Table) -> list[str]:
    return sorted(map(str, found.to_pylist()))


@pytest.mark.slow
@pytest.mark.parametrize("row_filter", ["true", "id > 9", "name = 'a' or price < 2", "value is nan", "id = 1000"])
def test_appends_between_versions_are_those_of_a_plan_made_here(
    between: Between, table: Table, mine: Table, row_filter: str
) -> None:
    ids = [each.snapshot_id for each in table.snapshots()]
    for begin in range(len(ids)):
        for end in range(begin, len(ids)):
            given: dict[str, Any] = {
                "from_snapshot_id_exclusive": ids[begin],
                "to_snapshot_id_inclusive": ids[end],
            }
            found, wanted = (each.incremental_append_scan(row_filter, **given) for each in (table, mine))
            assert comparable(found.to_arrow()) == comparable(wanted.to_arrow())
            assert found.count() == wanted.count()
    asked = [each for each in plans(between) if each["start-snapshot-id"] != each["end-snapshot-id"]]
    assert len(asked) == 2 * sum(range(len(ids)))
    assert {(each["start-snapshot-id"], each["end-snapshot-id"]) for each in asked} == {
        (ids[begin], ids[end]) for begin in range(len(ids)) for end in range(begin + 1, len(ids))
    }
    assert all("snapshot-id" not in each for each in asked)


def test_ranges_that_begin_otherwise_are_asked_for_by_what_is_before(
    between: Between, table: Table, mine: Table
) -> None:
    ids = [each.snapshot_id for each in table.snapshots()]
    given: dict[str, Any] = {"from_snapshot_id_inclusive": ids[2]}
    found = table.incremental_append_scan("id > 0", ("id",), **given)
    assert comparable(found.to_arrow()) == comparable(
        mine.incremental_append_scan("id > 0", ("id",), **given).to_arrow()
    )
    _, asked = plans(between)
    assert (asked["start-snapshot-id"], asked["end-snapshot-id"], asked["select"]) == (ids[1], ids[-1], ["id"])
    # Nothing is before the table's first snapshot, which a request could name.
    assert table.incremental_append_scan().count() == mine.incremental_append_scan().count() == 20
    assert len(plans(between)) == 2


def test_a_service_that_includes_the_beginning_is_corrected(between: Between, table: Table, mine: Table) -> None:
    ids: list[int | None] = [None, *(each.snapshot_id for each in table.snapshots())]

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        if asked.path.endswith("/plan"):
            body = json.loads(asked.body)
            begin = ids[ids.index(body["start-snapshot-id"]) - 1]
            asked = replace(asked, body=json.dumps({**body, "start-snapshot-id": begin}).encode())
        return forward(asked)

    between.behave = behave
    given: dict[str, Any] = {"from_snapshot_id_exclusive": ids[2], "to_snapshot_id_inclusive": ids[-1]}
    for row_filter in ("true", "id > 5", "id < 8"):
        found, wanted = (each.incremental_append_scan(row_filter, **given) for each in (table, mine))
        assert comparable(found.to_arrow()) == comparable(wanted.to_arrow())
    assert table.incremental_append_scan(**given, limit=3).to_arrow().num_rows == 3
    assert not any("min-rows-requested" in each for each in plans(between))


@pytest.mark.parametrize("statistics", [False, True])
def test_a_plan_as_a_table_is_that_of_a_plan_made_here(
    between: Between, table: Table, mine: Table, statistics: bool
) -> None:
    ids = [each.snapshot_id for each in table.snapshots()]
    for scan in (
        lambda each: each.scan("id != 17"),
        lambda each: each.scan("id > 100"),
        lambda each: each.incremental_append_scan(from_snapshot_id_exclusive=ids[0]),
    ):
        found, wanted = (scan(each).plan_arrow(include_stats=statistics) for each in (table, mine))
        assert found.schema == wanted.schema
        unknown = ["snapshot_id", "data_sequence_number", "file_sequence_number"]
        bounds = ["lower_bounds", "upper_bounds"] if statistics else []
        assert all(found[name].null_count == found.num_rows for name in unknown)
        plain = [name for name in found.column_names if name not in (*unknown, *bounds)]
        assert comparable(normal(found.select(plain))) == comparable(normal(wanted.select(plain)))
    asked = [each for each in plans(between) if each.get("start-snapshot-id") != each.get("end-snapshot-id", 0)]
    assert len(asked) == 3
    assert all(("stats-fields" in each) == statistics for each in asked)


def normal(found: pa.Table) -> pa.Table:
    """Maps in the order of their keys, and none for an empty one."""
    columns = []
    for column in found.columns:
        if pa.types.is_map(column.type):
            column = pa.array([sorted(each or []) for each in column.to_pylist()], column.type)
        columns.append(column)
    return pa.table(columns, found.column_names)


COUNTS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")


def statistics_of(file: Any, table: Table) -> dict[str, Any]:
    found: dict[str, Any] = {name: dict(getattr(file, name)) for name in COUNTS}
    for name in ("lower_bounds", "upper_bounds"):
        bounds = getattr(file, name)
        found[name] = {key: value_from_bytes(table.schema().find_type(key), value) for key, value in bounds.items()}
    return found


def test_statistics_of_columns_are_those_of_the_manifests(between: Between, table: Table, mine: Table) -> None:
    found, wanted = (
        {task.file.file_path: statistics_of(task.file, mine) for task in each.scan().plan_files(include_stats=True)}
        for each in (table, mine)
    )
    assert found == wanted
    assert any(each["lower_bounds"] for each in found.values())
    (asked,) = plans(between)
    assert {"id", "deep.a", "many.element", "with.dot"} <= set(asked["stats-fields"])
    for task in table.scan().plan_files():
        assert not task.file.value_counts


def answering(between: Between, change: Any) -> None:
    """Let the first part of a plan, which lists one file, say something else of it."""

    def behave(asked: Asked, forward: Forward) -> Answered | None:
        found = forward(asked)
        if not asked.path.endswith("/plan"):
            return found
        body = json.loads(found.body)
        for task in body["file-scan-tasks"]:
            task["data-file"].update(change)
        return Answered(200, {"Content-Type": "application/json"}, json.dumps(body).encode())

    between.behave = behave


HEXADECIMAL = {"keys": [1, 2, 4], "values": ["0100000000000000", "6161", "c04d0000"]}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (HEXADECIMAL, {1: 1, 2: "aa", 4: 19904}),
        ({"keys": [1, 2, 4], "values": [1, "6161", "2024-06-30"]}, {1: 1, 2: "6161", 4: 19904}),
        ({"keys": [2], "values": ["6161"]}, {}),
        ({"keys": [2], "values": ["xyz"]}, {2: "xyz"}),
        ({"keys": [2, 1, 99], "values": ["ab", None, 7]}, {}),
        ({"keys": [3], "values": ["NaN"]}, {}),
        (None, {}),
        ({"keys": [], "values": []}, {}),
    ],
)
def test_bounds_are_read_in_both_forms_that_services_write(
    between: Between, table: Table, mine: Table, given: Any, wanted: dict[int, Any]
) -> None:
    answering(between, {"lower-bounds": given, "upper-bounds": None})
    found = [task.file for task in table.scan("id < 4").plan_files(include_stats=True)][0]  # noqa: RUF015
    read = statistics_of(found, mine)["lower_bounds"]
    if 3 in read:
        read.pop(3)
    assert read == wanted


WRONG: dict[str, Any] = {
    "two forms": {"lower-bounds": {"keys": [1, 4], "values": [1, "c04d0000"]}},
    "fewer values than keys": {"value-counts": {"keys": [1, 2], "values": [4]}},
    "fewer keys than values": {"upper-bounds": {"keys": [1], "values": [4, 5]}},
    "a value of another type": {"lower-bounds": {"keys": [1], "values": [True]}},
    "a number that is too large": {"lower-bounds": {"keys": [10], "values": [2**40]}},
    "a list": {"lower-bounds": {"keys": [1], "values": [[1]]}},
    "bytes of another length": {"lower-bounds": {"keys": [1], "values": ["01"]}},
    "counts that are strings": {"value-counts": {"keys": [1], "values": ["many"]}},
    "a count beyond 64 bits": {"value-counts": {"keys": [1], "values": [2**70]}},
}


@pytest.mark.parametrize("name", WRONG)
def test_statistics_that_cannot_be_are_one_error(between: Between, table: Table, name: str) -> None:
    answering(between, WRONG[name])
    with pytest.raises(IcefieldError, match="the service") as raised:
        _ = [task.file for task in table.scan("id < 4").plan_files(include_stats=True)]
    assert isinstance(raised.value, InvalidMetadata) or "cannot be read" in str(raised.value)


NUMBERS: dict[str, Any] = {"sort-order-id": 2**31, "equality-ids": [-(2**31) - 1]}


@pytest.mark.parametrize("name", NUMBERS)
def test_an_id_beyond_32_bits_is_an_error_of_the_service(between: Between, table: Table, name: str) -> None:
    answering(between, {name: NUMBERS[name]})
    with pytest.raises(IcefieldError, match="cannot be read"):
        table.scan("id < 4").plan_arrow(include_stats=True)
