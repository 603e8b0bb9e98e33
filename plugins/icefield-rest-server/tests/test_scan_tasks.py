"""Tasks are written in columns: what is written is what the objects of the plan say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from icefield import Catalog, Table, load_catalog
from icefield.scan import FileScanTask, PlannedManifest
from icefield.toolkit import value_from_bytes, value_to_json
from icefield.writing import DataFile
from icefield_rest_server.json_columns import arrays, elements, number_arrays, strings, texts
from icefield_rest_server.scan_tasks import TaskWriter

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("f", pa.float64()),
        ("day", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("dec", pa.decimal128(9, 2)),
        ("raw", pa.binary()),
        ("flag", pa.bool_()),
    ]
)
NAMES = (None, 'a"b', "c\\d", "é\n", "x/y")
FLOATS = (0.0, -0.0, nan, inf, -inf, None, 1.5)


def row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": NAMES[number % 5],
        "f": FLOATS[number % 7],
        "day": date(2020, 1, 1 + number % 2),
        "ts": datetime(2021, 1, 1, 0, 0, number % 2, 5),
        "dec": Decimal(number % 3) / 4,
        "raw": bytes([number % 2]) if number % 4 else None,
        "flag": bool(number % 2),
    }


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    folder = tmp_path_factory.mktemp("lake")
    uri, warehouse = f"sqlite:///{folder}/catalog.db", f"file://{folder}/warehouse"
    with load_catalog("served", type="sql", uri=uri, warehouse=warehouse) as made:
        made.create_namespace("db")
        yield made


@pytest.fixture(scope="module", params=[(2, ()), (2, ("name", "f")), (3, ("day", "ts", "dec", "raw", "flag")), (3, ())])
def table(request: pytest.FixtureRequest, catalog: Catalog) -> Table:
    """Files of several commits, under two specs, with deletes that some of them have."""
    version, partition = request.param
    properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    made = catalog.create_table(f"db.t{version}_{len(partition)}", SCHEMA, properties=properties)
    if partition:
        with made.update_spec() as update:
            for name in partition:
                update.add_identity(name)
    for start in (0, 70):
        made.append(pa.Table.from_pylist([row(start + number) for number in (*range(35), 1, 2)], SCHEMA))
    made.delete("id = 2 or id = 70")
    if partition:
        with made.update_spec() as update:
            update.remove_field(partition[0])
        made.append(pa.Table.from_pylist([row(number) for number in range(140, 170)], SCHEMA))
    return made


def said(task: FileScanTask, table: Table, wanted: dict[int, Any]) -> dict[str, Any]:
    """What a task says of its files, of its partition as JSON values, and of the bounds that are wanted."""
    lower = {
        n: value_to_json(kind, value_from_bytes(kind, b))
        for n, kind in wanted.items()
        if (b := task.file.lower_bounds.get(n)) is not None
    }
    return {
        **_file(task.file, table),
        "value-counts": {n: c for n, c in task.file.value_counts.items() if n in wanted},
        "lower-bounds": lower,
        "deletes": sorted(json.dumps(_file(each, table), sort_keys=True) for each in task.delete_files),
    }


def _file(file: DataFile, table: Table) -> dict[str, Any]:
    spec = table.metadata.spec_by_id(file.spec_id)
    kinds = [each.field_type for each in spec.partition_type(table.schema(), list(table.metadata.schemas)).fields]
    given = {
        "split-offsets": file.split_offsets,
        "sort-order-id": file.sort_order_id,
        "first-row-id": file.first_row_id,
        "equality-ids": file.equality_ids,
        "referenced-data-file": file.referenced_data_file,
        "content-offset": file.content_offset,
        "content-size-in-bytes": file.content_size_in_bytes,
    }
    return {
        "content": ("data", "position-deletes", "equality-deletes")[file.content],
        "file-path": file.file_path,
        "file-format": file.file_format,
        "spec-id": file.spec_id,
        "partition": [_json(kind, value) for kind, value in zip(kinds, file.partition, strict=True)],
        "file-size-in-bytes": file.file_size_in_bytes,
        "record-count": file.record_count,
        **{name: list(v) if isinstance(v, tuple) else v for name, v in given.items() if v is not None},
    }


def _json(kind: Any, value: Any) -> Any:
    if isinstance(value, float) and (value != value or value in (inf, -inf)):
        return {inf: "Infinity", -inf: "-Infinity"}.get(value, "NaN")
    return value_to_json(kind, value)


@pytest.mark.parametrize("row_filter", ["", "id > 11", "name = 'x/y' or id < 20"])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_what_is_written_is_what_the_tasks_say(table: Table, row_filter: str, one_by_one: bool) -> None:
    scan = table.scan(row_filter) if row_filter else table.scan()
    schema = table.schema()
    wanted = {field.field_id: field.field_type for field in schema.fields if field.name not in ("f",)}
    parts = list(scan.plan_manifests(include_stats=True))
    if one_by_one:
        parts = [part.slice(place, place + 1) for part in parts for place in range(len(part))]
    body = json.loads(msgspec.json.encode(TaskWriter(table.metadata, schema, frozenset(wanted)).body(parts)))
    deletes = body.get("delete-files", [])
    found = []
    for task in body["file-scan-tasks"]:
        file = task["data-file"]
        kept = {name: value for name, value in file.items() if not isinstance(value, dict)}
        for name in ("value-counts", "lower-bounds"):
            kept[name] = dict(zip(file[name]["keys"], file[name]["values"], strict=True))
        places = task.get("delete-file-references", [])
        found.append({**kept, "deletes": sorted(json.dumps(deletes[place], sort_keys=True) for place in places)})
    planned = list(scan.plan_files(include_stats=True))
    assert [repr(sorted(each.items())) for each in found] == [
        repr(sorted(said(task, table, wanted).items())) for task in planned
    ]
    assert len(deletes) == len({(d.file_path, d.content_offset) for task in planned for d in task.delete_files})


def test_a_plan_in_columns_begins_at_any_manifest(table: Table) -> None:
    whole = list(table.scan().plan_manifests())
    assert len(whole) > 1
    for begun, part in enumerate(whole):
        again = list(table.scan().plan_manifests(first=part.place))
        assert [each.place for each in again] == [each.place for each in whole[begun:]]
        assert [_paths(each) for each in again] == [_paths(each) for each in whole[begun:]]
        assert [each.delete_numbers.tolist() for each in again] == [
            each.delete_numbers.tolist() for each in whole[begun:]
        ]


def _paths(part: PlannedManifest) -> list[str]:
    found: list[str] = part.files.column("file_path").to_pylist()
    return found


def test_slices_and_nulls_of_columns_are_written_as_they_are() -> None:
    column = pa.array(["z", "a", 'b"', None, "\x01é"])
    assert strings(column.slice(1)).to_pylist() == ['"a"', '"b\\""', None, '"\\u0001é"']
    assert strings(column.slice(0, 2)).to_pylist() == ['"z"', '"a"']
    lists = pa.array([[9], [1, 2], None, []])
    assert number_arrays(lists.slice(1)).to_pylist() == ["[1,2]", None, "[]"]
    floats = pa.array([0.0, -0.0, None, 0.0])
    assert texts(floats, str).to_pylist() == ['"0.0"', '"-0.0"', None, '"0.0"']
    rows = arrays(pa.array([1, 0, 2]).to_numpy(), pa.array(["1", None, "3"], pa.large_string()))
    assert rows.to_pylist() == ["[1]", "[]", "[null,3]"]
    ended = pa.array(["x,", "1,", "2,"], pa.large_string())
    assert elements(ended.slice(1)) == b"1,2"
    assert elements(ended.slice(3)) == b""
