"""Plans: which manifests are opened, which files are handed out, and that nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.abc import PutMode, ScanPlanned
from icefield.errors import FileMissing, InvalidMetadata
from icefield.expressions import AlwaysTrue, bind
from icefield.manifest import ALL_COLUMNS, DataFile, ManifestWriter, clear_caches, read_manifest
from icefield.metadata.metrics import MetricsCollector, MetricsConfig, apply_modes
from icefield.partitioning.spec import normalised_key
from icefield.scan import FileScanTask
from icefield.schema import Schema
from icefield.types import NestedField, parse_type
from naive_filters import COLUMNS, TRANSFORMS, expressions, naive, rows, spec_of, to_batch
from naive_filters import SCHEMA as WIDE
from pickling_runner import PicklingRunner
from planned_tables import SCHEMA, CountingIO, PlannedTable, name_of, spec

BY_ID = spec((1, "identity", "id"))


def opened(table: PlannedTable) -> list[str]:
    found: list[str] = table.io.opened  # type: ignore[attr-defined]
    return found


def reads(table: PlannedTable, row_filter: str) -> list[int]:
    """The numbers of the manifests that a plan opens."""
    clear_caches()
    opened(table).clear()
    table.planned(row_filter)
    numbers = {manifest.manifest_path: i for i, manifest in enumerate(table.manifests)}
    return sorted(numbers[path] for path in opened(table) if path in numbers)


@pytest.mark.spec("SCAN-01")
def test_a_table_without_snapshots_has_an_empty_plan() -> None:
    table = PlannedTable()
    assert table.planned() == []
    assert table.scan().plan_arrow().num_rows == 0
    assert table.scan().count() == 0
    assert table.scan().to_arrow().num_rows == 0
    table.commit()
    assert table.planned() == []


@pytest.mark.spec("SCAN-01", "SNAP-10", "SNAP-12", "MAN-15")
def test_a_snapshot_s_data_is_the_union_of_its_manifests_which_snapshots_share() -> None:
    table = PlannedTable()
    table.add([table.file("a"), table.file("b")])
    first = table.commit()
    before = table.io.read(table.manifests[0].manifest_path)
    table.add([table.file("c")])
    table.commit()
    assert table.planned() == ["a", "b", "c"]
    assert table.planned(snapshot_id=first) == ["a", "b"]
    assert table.io.read(table.manifests[0].manifest_path) == before
    numbers = table.scan().plan_arrow()["data_sequence_number"].to_pylist()
    assert numbers == [1, 1, 2]


@pytest.mark.spec("SCAN-02", "MAN-17", "MAN-18", "MAN-23")
def test_deleted_entries_are_not_planned() -> None:
    table = PlannedTable()
    manifest = table.add([table.file("a"), table.file("b"), table.file("c")])
    table.commit()
    old = read_manifest(table.io, table.manifests[0], table.specs[0].partition_type(SCHEMA), columns=ALL_COLUMNS)
    location = table.path("metadata/rewritten.avro")
    with ManifestWriter(table.io, location, table.specs[0], SCHEMA, 2, table.next_snapshot_id) as writer:
        writer.existing(old.take(np.array([0, 2])))
        writer.delete(old.take(np.array([1])))
    table.manifests = [writer.close()]
    table.commit()
    assert manifest.added_files_count == 3
    assert table.planned() == ["a", "c"]
    assert table.scan().plan_arrow().num_rows == 2


@pytest.mark.spec("SCAN-17", "ML-21")
def test_a_manifest_is_skipped_by_counts_only_when_both_are_known_to_be_zero() -> None:
    table = PlannedTable(format_version=1)
    for i in range(3):
        table.add([table.file(str(i))])
    # The counts of the last two manifests are wrong, but their sum is unknown or not zero, so no data may be lost.
    table.manifests[0] = replace(table.manifests[0], added_files_count=0, existing_files_count=0)
    table.manifests[1] = replace(table.manifests[1], added_files_count=None, existing_files_count=0)
    table.manifests[2] = replace(table.manifests[2], added_files_count=0, existing_files_count=5)
    table.commit()
    assert reads(table, "true") == [1, 2]
    assert table.planned() == ["1", "2"]


@pytest.mark.spec("SCAN-18", "ML-12", "ML-13", "PART-08")
def test_manifests_are_skipped_by_their_summaries_before_they_are_opened() -> None:
    table = PlannedTable(specs=[BY_ID])
    for low in (0, 10, 20):
        table.add([table.file(f"{low}", (low,)), table.file(f"{low + 5}", (low + 5,))])
    table.add([table.file("null", (None,))])
    table.manifests.append(replace(table.write([table.file("unknown", (12,))]), partitions=None))
    table.commit()
    assert reads(table, "id = 12") == [1, 4]
    assert reads(table, "id is null") == [3, 4]
    assert reads(table, "id > 100") == [4]
    assert reads(table, "id >= 15 and id < 21") == [1, 2, 4]
    assert reads(table, "name = 'x'") == [0, 1, 2, 3, 4]
    assert table.planned("id = 12") == ["unknown"]
    assert table.planned("id is null") == ["null"]


@pytest.mark.spec("SCAN-03", "PART-07", "PART-08", "PART-05", "PART-23")
def test_each_manifest_is_judged_by_its_own_spec() -> None:
    old, new = spec((1, "bucket[8]", "id_bucket")), spec((1, "bucket[16]", "id_bucket_16"), spec_id=1, first_id=1001)
    table = PlannedTable(specs=[old, new])
    buckets = {one.spec_id: one.fields[0].transform for one in (old, new)}
    kind = parse_type("long")
    for spec_id in (0, 1):
        for value in range(4):
            bucket = buckets[spec_id].apply_value(value, kind)
            table.add([table.file(f"{spec_id}-{value}", (bucket,), spec_id=spec_id)])
    table.commit()
    for value in range(4):
        same = {
            f"{spec_id}-{other}"
            for spec_id in (0, 1)
            for other in range(4)
            if buckets[spec_id].apply_value(other, kind) == buckets[spec_id].apply_value(value, kind)
        }
        assert set(table.planned(f"id = {value}")) == same
    assert len(table.planned()) == 8


@pytest.mark.spec("PART-19", "SCAN-15")
def test_a_field_of_an_unknown_transform_prunes_nothing_and_the_others_still_do() -> None:
    table = PlannedTable(specs=[spec((1, "bucket[4]", "odd"), (2, "identity", "name"))])
    table.add([table.file("a", (1, "x")), table.file("b", (2, "y"))])
    table.commit()
    table.specs = [spec((1, "zorder[3]", "odd"), (2, "identity", "name"))]
    assert table.planned("id = 7") == ["a", "b"]
    assert table.planned("id = 7 and name = 'y'") == ["b"]
    # The partition value is known all the same.
    assert [task.file.partition for task in table.scan().plan_files()] == [(1, "x"), (2, "y")]
    assert table.scan().plan_arrow()["partition"].to_pylist()[0]["name"] == "x"


def test_a_source_column_that_is_gone_leaves_the_plan_as_it_is() -> None:
    table = PlannedTable(specs=[spec((1, "identity", "id"), (2, "identity", "name"))])
    table.add([table.file("a", (1, "x")), table.file("b", (2, "y"))])
    table.commit()
    table.schema = Schema(*SCHEMA.fields[1:], schema_id=1)
    table.schemas.append(table.schema)
    assert table.planned("name = 'y'") == ["b"]
    assert [task.file.partition for task in table.scan().plan_files()] == [(1, "x"), (2, "y")]


@pytest.mark.spec("SCAN-19", "SCAN-25", "SCAN-40")
def test_files_are_skipped_by_their_statistics_and_kept_where_these_are_missing() -> None:
    table = PlannedTable()
    table.add(
        [
            table.file("low", bounds={"id": (0, 9)}),
            table.file("high", bounds={"id": (10, 19)}),
            table.file("nulls", nulls={"id": 100}),
            table.file("unknown"),
            table.file("empty", record_count=0),
            table.file("uncounted", record_count=-1, bounds={"id": (0, 100)}),
            replace(table.file("corrupt"), lower_bounds={1: b"\x01"}, upper_bounds={1: b"\x02\x03"}),
        ]
    )
    table.commit()
    # A count of zero rows is not trusted, so the file is planned.
    always = ["unknown", "empty", "uncounted", "corrupt"]
    assert table.planned("id = 12") == ["high", *always]
    assert table.planned("id < 5") == ["low", *always]
    assert table.planned("id is null") == ["nulls", "unknown", "empty", "corrupt"]
    assert table.planned("id = 1000") == ["unknown", "empty", "corrupt"]
    assert table.planned("id = 1000 or name = 'a'") == ["low", "high", "nulls", *always]
    # Without a filter all files are planned.
    assert len(table.planned()) == 7


@pytest.mark.spec("SCAN-06")
def test_the_residual_is_what_the_partition_leaves_open() -> None:
    table = PlannedTable(specs=[spec((1, "identity", "id"), (3, "day", "ts_day"))])
    table.add([table.file("a", (5, 0)), table.file("b", (6, 1))])
    table.commit()

    def residuals(row_filter: str) -> dict[str, str]:
        tasks = table.scan(row_filter).plan_files()
        return {name_of(task.file.file_path): str(task.residual) for task in tasks}

    assert residuals("id >= 5") == {"a": "true", "b": "true"}
    assert residuals("id = 5 and name = 'x'") == {"a": "name = 'x'"}
    assert residuals("id = 5 or name = 'x'") == {"a": "true", "b": "name = 'x'"}
    assert residuals("ts >= '1970-01-01T12:00:00'") == {"a": "ts >= '1970-01-01T12:00:00.000000'", "b": "true"}


@pytest.mark.spec("FS-07", "FS-05")
@pytest.mark.parametrize("files", [10, 2000])
def test_planning_asks_as_much_of_storage_for_many_files_as_for_few(files: int) -> None:
    table = PlannedTable()
    for part in range(2):
        table.add([table.file(f"{part}-{i}") for i in range(files // 2)])
    table.commit()
    clear_caches()
    opened(table).clear()
    plan = table.scan("id = 5").plan_arrow()
    assert plan.num_rows == files
    # The manifest list and the two manifests were opened once each, and no other request was made.
    assert len(opened(table)) == 3
    clear_caches()
    opened(table).clear()
    assert sum(1 for task in table.scan().plan_files() if task.file.file_size_in_bytes) == files
    assert len(opened(table)) == 3


@pytest.mark.spec("FS-08")
def test_a_plan_writes_nothing() -> None:
    class ReadOnly(CountingIO):
        def put(self, *given: Any) -> Any:
            raise AssertionError("written")

        open_output = delete_many = put

    table = PlannedTable(specs=[BY_ID])
    table.add([table.file("a", (1,))])
    table.commit()
    table.io = ReadOnly(table.io.plugins)
    assert table.planned("id = 1") == ["a"]


@pytest.mark.spec("META-26")
def test_a_scan_keeps_to_its_metadata_whatever_is_committed_meanwhile() -> None:
    table = PlannedTable()
    for i in range(6):
        table.add([table.file(f"{i}-{j}") for j in range(3)])
    table.commit()
    scan = table.scan()
    plan = scan.plan_files()
    first = next(plan)
    table.manifests = table.manifests[:1]
    table.commit()
    rest = [name_of(task.file.file_path) for task in plan]
    assert [name_of(first.file.file_path), *rest] == [f"{i}-{j}" for i in range(6) for j in range(3)]
    assert len(list(scan.plan_files())) == 18
    assert len(table.planned()) == 3


def test_the_first_task_is_out_before_the_last_manifest_is_read() -> None:
    table = PlannedTable()
    for i in range(60):
        table.add([table.file(f"{i}")])
    table.commit()
    clear_caches()
    opened(table).clear()
    plan = table.scan().plan_files()
    next(plan)
    assert len(opened(table)) < 40
    plan.close()  # type: ignore[attr-defined]
    assert table.planned() == [str(i) for i in range(60)]


def test_a_repeated_plan_opens_nothing() -> None:
    table = PlannedTable(specs=[BY_ID])
    table.add([table.file("a", (1,), bounds={"id": (1, 1)})])
    table.commit()
    clear_caches()
    plans = ["true", "id = 1", "name = 'x'"]
    first = [table.scan(one).plan_arrow() for one in plans]
    opened(table).clear()
    assert [table.scan(one).plan_arrow() for one in plans] == first
    assert opened(table) == []


@pytest.mark.parametrize("cut", [0.3, 0.9])
def test_a_damaged_or_missing_manifest_ends_the_plan_with_its_name(cut: float) -> None:
    table = PlannedTable()
    table.add([table.file("a")])
    broken = table.add([table.file("b")])
    table.commit()
    data = table.io.read(broken.manifest_path)
    clear_caches()
    table.io.delete_many([broken.manifest_path])
    with pytest.raises(FileMissing, match=broken.manifest_path):
        table.planned()
    table.io.put(broken.manifest_path, data[: int(len(data) * cut)], PutMode.CREATE)
    plan = table.scan().plan_files()
    assert name_of(next(plan).file.file_path) == "a"
    with pytest.raises(InvalidMetadata, match=broken.manifest_path):
        next(plan)


@pytest.mark.spec("ML-05")
def test_a_manifest_of_a_spec_that_the_table_does_not_have_is_refused() -> None:
    table = PlannedTable(specs=[spec(), spec((1, "identity", "id"), spec_id=5)])
    table.add([table.file("a", (1,), spec_id=5)])
    table.commit()
    table.specs = table.specs[:1]
    with pytest.raises(InvalidMetadata, match="5"):
        table.planned()


@pytest.mark.spec("SNAP-11", "ML-22")
def test_a_snapshot_that_names_its_manifests_itself_is_planned() -> None:
    table = PlannedTable(specs=[BY_ID], format_version=1)
    manifests = [table.write([table.file(str(i), (i,))]) for i in range(3)]
    table.add_snapshot(None, manifests=[manifest.manifest_path for manifest in manifests])
    assert table.planned() == ["0", "1", "2"]
    assert table.planned("id = 1") == ["1"]
    assert table.scan().plan_arrow()["data_sequence_number"].to_pylist() == [0, 0, 0]


def test_listeners_hear_what_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    table = PlannedTable(specs=[BY_ID])
    for i in range(3):
        table.add([table.file(f"{i}", (i,)), table.file(f"{i}x", (i + 10,))])
    table.commit()
    heard: list[ScanPlanned] = []
    monkeypatch.setattr(type(table.io.listeners), "__bool__", lambda self: True)
    monkeypatch.setattr(type(table.io.listeners), "tell", lambda self, event: heard.append(event))
    list(table.scan("id < 2", identifier=("db", "t")).plan_files())
    [event] = heard
    assert (event.table, event.snapshot_id, event.row_filter) == (("db", "t"), 1000, "id < 2")
    assert (event.manifests_read, event.manifests_skipped, event.files_planned, event.files_skipped) == (2, 1, 2, 2)
    assert event.seconds > 0
    metadata = table.scan().metadata
    assert (event.location, event.schema) == (metadata.location, metadata.schema())


def written_files(table: PlannedTable, found: list[dict[str, Any]]) -> dict[str, tuple[DataFile, list[dict[str, Any]]]]:
    """Rows put into files by the tuples of the table's spec, with the statistics that a writer would give."""
    one = table.specs[0]
    groups: dict[Any, tuple[tuple[Any, ...], list[dict[str, Any]]]] = {}
    for row in found:
        values = tuple(
            field.transform.apply_value(row[WIDE.find_column_name(field.source_id)], WIDE.find_type(field.source_id))
            for field in one.fields
        )
        groups.setdefault(normalised_key(values), (values, []))[1].append(row)
    files = {}
    for number, (values, members) in enumerate(groups.values()):
        batch = to_batch(members)
        collector = MetricsCollector(batch.schema)
        collector.update(batch)
        encoded = apply_modes(collector.metrics(), MetricsConfig.from_properties({}, WIDE), WIDE)
        file = table.file(
            str(number),
            values,
            spec_id=1,
            record_count=len(members),
            value_counts=encoded.value_counts,
            null_value_counts=encoded.null_value_counts,
            nan_value_counts=encoded.nan_value_counts,
            lower_bounds=encoded.lower_bounds,
            upper_bounds=encoded.upper_bounds,
        )
        files[name_of(file.file_path)] = (file, members)
    return files


@st.composite
def scans(draw: st.DrawFn) -> tuple[dict[str, str], Any, list[dict[str, Any]], Any]:
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=3, unique=True))
    columns = {name: COLUMNS[name] for name in names}
    fields = []
    for name in names:
        kind = WIDE.find_type(name)
        fitting = [text for text in TRANSFORMS if spec_of((name, text)).fields[0].transform.can_transform(kind)]
        if str(kind).startswith("decimal"):
            # Truncating the smallest decimal of a precision gives one digit more than the precision.
            fitting = [text for text in fitting if not text.startswith("truncate")]
        if draw(st.booleans()):
            fields.append((name, draw(st.sampled_from(fitting))))
    return columns, spec_of(*fields), draw(rows(columns)), draw(expressions(columns, 3))


def comparable(task: FileScanTask) -> tuple[Any, ...]:
    """The contents of a task; a NaN in the partition becomes a string, because no NaN equals another."""
    values = tuple("NaN" if value != value else value for value in task.file.partition)
    numbers = task.start, task.length, task.data_sequence_number, task.file_sequence_number
    return replace(task.file, partition=values), task.residual, task.delete_files, numbers


@pytest.mark.slow
@pytest.mark.spec("SCAN-03", "SCAN-06", "SCAN-18", "SCAN-19", "SCAN-23", "PART-08")
@settings(max_examples=150, deadline=None)
@given(scans())
def test_no_file_with_a_matching_row_is_lost_and_residuals_match_the_rows_that_the_filter_matches(
    made: tuple[dict[str, str], Any, list[dict[str, Any]], Any],
) -> None:
    _, one, found, row_filter = made
    table = PlannedTable(schema=WIDE, specs=[one])
    files = written_files(table, found)
    for start in range(0, len(files), 3):
        table.add([file for file, _ in list(files.values())[start : start + 3]])
    table.commit()
    scan = table.scan(row_filter)
    tasks = {name_of(task.file.file_path): task for task in scan.plan_files()}
    elsewhere = [comparable(task) for task in scan.planned_on(PicklingRunner()).plan_files()]
    assert elsewhere == [comparable(task) for task in scan.plan_files()]
    bound = bind(WIDE, row_filter)
    for name, (_, members) in files.items():
        matching = [row for row in members if naive(bound, row)]
        if name not in tasks:
            assert not matching
        else:
            assert [row for row in members if naive(tasks[name].residual, row)] == matching
    if isinstance(bound, AlwaysTrue):
        assert set(tasks) == set(files)


@pytest.mark.parametrize("least", [0, 1 << 30])
def test_a_runner_reads_manifests_of_data_files_where_they_are_large(least: int) -> None:
    table = PlannedTable(specs=[BY_ID])
    for number in range(6):
        table.add([table.file(partition=(number,), bounds={"id": (number, number)}, nulls={"id": 0})])
    table.commit()
    runner = PicklingRunner()
    runner.least_manifest_bytes = least
    scan = table.scan("id > 2")
    assert list(scan.planned_on(runner).plan_files(include_stats=True)) == list(scan.plan_files(include_stats=True))
    assert bool(runner.items) is (least == 0)
    assert scan.planned_on(runner).count() == scan.count()


def test_a_plan_as_a_table_holds_what_the_tasks_hold() -> None:
    specs = [
        spec((1, "identity", "id")),
        spec((2, "identity", "name"), (1, "identity", "id2"), spec_id=1, first_id=1001),
    ]
    table = PlannedTable(specs=specs)
    table.add([table.file("a", (7,), sort_order_id=3, split_offsets=(4, 9), bounds={"id": (7, 7)})])
    table.commit()
    table.add([table.file("b", ("x", 8), spec_id=1, key_metadata=b"k")])
    table.commit()
    found = table.scan().plan_arrow(include_stats=True)
    tasks = list(table.scan().plan_files(include_stats=True))
    assert found["file_path"].to_pylist() == [task.file.file_path for task in tasks]
    assert found["spec_id"].to_pylist() == [0, 1]
    assert found["partition"].to_pylist() == [
        {"id": 7, "name": None, "id2": None},
        {"id": None, "name": "x", "id2": 8},
    ]
    assert found["lower_bounds"].to_pylist() == [list(tasks[0].file.lower_bounds.items()), None]
    for column in ("record_count", "file_size_in_bytes", "sort_order_id", "key_metadata", "file_format"):
        assert found[column].to_pylist() == [getattr(task.file, column) for task in tasks]
    assert found["data_sequence_number"].to_pylist() == [task.data_sequence_number for task in tasks] == [1, 2]
    assert found["file_sequence_number"].to_pylist() == [task.file_sequence_number for task in tasks]
    assert found["split_offsets"].to_pylist() == [[4, 9], None]
    assert table.scan().plan_arrow().schema.equals(pa.schema([f for f in found.schema if f.name not in STATISTICS]))
    # Without statistics the files have none.
    assert all(not task.file.lower_bounds for task in table.scan("id = 7").plan_files())


STATISTICS = {
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
}


def test_partition_fields_that_share_a_name_are_stated_apart() -> None:
    specs = [spec((1, "identity", "p")), spec((2, "identity", "p"), spec_id=1, first_id=1001)]
    table = PlannedTable(specs=specs)
    table.add([table.file("a", (7,))])
    table.add([table.file("b", ("x",), spec_id=1)])
    table.commit()
    assert table.scan().plan_arrow()["partition"].to_pylist() == [{"p_1000": 7, "p": None}, {"p_1000": None, "p": "x"}]


def test_statistics_of_a_promoted_column_are_read_in_their_old_form() -> None:
    narrow = Schema(NestedField(1, "id", parse_type("int")))
    table = PlannedTable(schema=narrow, specs=[spec((1, "identity", "id"))])
    table.add([table.file("a", (5,), bounds={"id": (5, 5)}), table.file("b", (6,), bounds={"id": (6, 6)})])
    table.commit()
    table.schema = Schema(NestedField(1, "id", parse_type("long")), schema_id=1)
    table.schemas.append(table.schema)
    assert table.planned("id = 6") == ["b"]
    assert table.planned(f"id < {2**40}") == ["a", "b"]
    assert table.scan().plan_arrow().schema.field("partition").type.field("id").type == pa.int64()
