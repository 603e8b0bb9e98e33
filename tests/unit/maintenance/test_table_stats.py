"""Distinct values of the columns of a table: counted, written into a Puffin file and registered."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import datasketches
import mmh3
import pyarrow as pa
import pytest
from icefield import Table
from icefield.errors import InvalidArgument, NoSuchSnapshot
from icefield.metadata import StatisticsFile
from icefield.puffin import BlobType, PuffinWriter
from icefield.schema import Schema, schema_to_arrow
from icefield.types import NestedField
from icefield.types.values import to_internal, value_to_bytes
from icefield_maintenance.puffin_reader import PuffinReader
from icefield_maintenance.theta import ThetaSketch, distinct_values, theta_estimate
from tables import again, new_table, orphans, rows

MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}


def blobs(table: Table, file: StatisticsFile) -> dict[tuple[int, ...], tuple[Any, bytes]]:
    with PuffinReader(table.io.open_input(file.statistics_path), file.statistics_path) as reader:
        return {blob.fields: (blob, reader.read(blob)) for blob in reader.blobs}


def computed(table: Table, *args: Any, **kwargs: Any) -> StatisticsFile:
    made = table.maintenance.compute_table_stats(*args, **kwargs)
    assert made is not None
    return made


def numbers(table: Table, file: StatisticsFile) -> dict[str, int | None]:
    names = {
        field.field_id: name for name, field in ((n, table.schema().find_field(n)) for n in table.schema().column_names)
    }
    return {names[fields[0]]: distinct_values(blob) for fields, (blob, _) in blobs(table, file).items()}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.spec("PUF-07")
def test_each_column_has_a_sketch_of_the_rows_that_are_not_deleted(version: int) -> None:
    table = new_table(properties={"format-version": str(version), **MERGE_ON_READ})
    table.append(rows(range(100), "a"))
    table.append(rows(range(50, 150), None, 2.0))
    table.delete("id < 20")
    made = computed(table)
    assert numbers(table, made) == {"id": 130, "kind": 1, "value": 2}
    assert [*again(table).refresh().metadata.statistics] == [made]
    snapshot = table.current_snapshot()
    assert snapshot is not None
    stored = table.io.read(made.statistics_path)
    assert len(stored) == made.file_size_in_bytes
    assert stored[-made.file_footer_size_in_bytes :][:4] == b"PFA1"
    for said, (blob, data) in zip(made.blob_metadata, blobs(table, made).values(), strict=True):
        assert (blob.type, blob.snapshot_id) == (BlobType.THETA_SKETCH, snapshot.snapshot_id)
        assert blob.sequence_number == snapshot.sequence_number
        assert (said.type, said.fields, said.properties) == (blob.type, blob.fields, blob.properties)
        assert theta_estimate(data, "s") == float(blob.properties["ndv"])
    assert not orphans(table) - {made.statistics_path}


def test_values_of_every_type_are_hashed_in_their_binary_form() -> None:
    day, stamp = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 1, 2, 3, 4)
    values: dict[str, list[Any]] = {
        "boolean": [True, False],
        "int": [1, -2, 2**31 - 1],
        "long": [1, -2, 2**40],
        "float": [0.0, -0.0, 1.5],
        "double": [0.0, -0.0, 1.5],
        "decimal(9,2)": [Decimal("1.23"), Decimal("-400.00"), Decimal("0.00")],
        "date": [day],
        "time": [dt.time(1, 2, 3)],
        "timestamp": [stamp],
        "timestamptz": [stamp.replace(tzinfo=dt.UTC)],
        "string": ["", "a", "something longer than sixteen bytes", "ü"],
        "binary": [b"", b"\x00", b"\xff" * 3000],
        "fixed[3]": [b"abc", b"\xff\x00\x01"],
        "uuid": [uuid.UUID(int=5).bytes],
    }
    schema = Schema(*(NestedField(at, f"c{at}", kind) for at, kind in enumerate(values, 1)))
    table = new_table(schema=schema)
    for start in range(4):
        columns = [
            pa.array([column[start]] if start < len(column) else [None], field.type)
            for column, field in zip(values.values(), schema_to_arrow(table.schema()), strict=True)
        ]
        table.append(pa.Table.from_arrays(columns, schema=schema_to_arrow(table.schema())))
    found = blobs(table, computed(table))
    for field, column in zip(table.schema().fields, values.values(), strict=True):
        encoded = [value_to_bytes(field.field_type, to_internal(field.field_type, value)) for value in column]
        expected = {mmh3.hash64(each, 9001, signed=False)[0] >> 1 for each in encoded if each}
        sketch = datasketches.compact_theta_sketch.deserialize(found[(field.field_id,)][1])
        assert set(sketch) == expected, field


@pytest.mark.parametrize("count", [0, 1, 2, 4096, 4097, 60_000])
@pytest.mark.spec("PUF-07")
def test_a_sketch_is_as_the_library_of_datasketches_would_have_it(count: int) -> None:
    """Both sketches of the same values hold the same hashes, so a union of both adds nothing."""
    words = [f"word {number}" for number in range(count)]
    theirs = datasketches.update_theta_sketch()
    for word in words:
        theirs.update(word)
    ours = ThetaSketch()
    for start in range(0, 2 * count, 7000):
        ours.update(pa.array((words + words)[start : start + 7000], pa.string()).cast(pa.binary()))
    read = datasketches.compact_theta_sketch.deserialize(ours.to_bytes())
    assert read.is_ordered()
    assert read.get_estimate() == ours.estimate == theta_estimate(ours.to_bytes(), "s")
    assert abs(ours.estimate - count) <= 0.05 * count
    if count <= 4096:
        assert set(read) == set(theirs.compact())
    theta = min(read.theta64, theirs.theta64)
    assert {each for each in read if each < theta} == {each for each in theirs.compact() if each < theta}
    union = datasketches.theta_union()
    union.update(read)
    union.update(theirs)
    assert abs(union.get_result().get_estimate() - count) <= 0.05 * count


def test_columns_inside_structs_are_counted_and_others_are_refused() -> None:
    kind = pa.struct([("name", pa.string()), ("size", pa.int32())])
    schema = pa.schema([("id", pa.int64()), ("s", kind), ("l", pa.list_(pa.int32()))])
    table = new_table(schema=schema)
    given = [{"id": 1, "s": {"name": "a", "size": 1}, "l": [1]}, {"id": 2, "s": None, "l": []}]
    given += [{"id": 3, "s": {"name": "b", "size": 1}, "l": None}]
    table.append(pa.Table.from_pylist(given, schema=schema))
    assert numbers(table, computed(table)) == {"id": 3}
    assert numbers(table, computed(table, ["s.name", "s.size"])) == {"id": 3, "s.name": 2, "s.size": 1}
    for name in ("s", "l", "l.element"):
        with pytest.raises(InvalidArgument, match=f"column '{name}' is"):
            table.maintenance.compute_table_stats([name])
    with pytest.raises(InvalidArgument, match="no column is named 'absent'"):
        table.maintenance.compute_table_stats(["absent"])


def test_a_column_may_be_given_by_its_name_alone() -> None:
    table = new_table()
    table.append(rows(range(9)))
    assert numbers(table, computed(table, "kind")) == {"kind": 1}


def test_statistics_of_other_columns_and_kinds_are_kept() -> None:
    table = new_table()
    table.append(rows(range(9)))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    first = computed(table, ["id"])
    location = f"{table.location()}/metadata/others.stats"
    with PuffinWriter(table.io.open_output(location)) as writer:
        writer.add("histogram-of-others", b"xyz", fields=[3], snapshot_id=snapshot.snapshot_id, sequence_number=1)
        with PuffinReader(table.io.open_input(first.statistics_path), "f") as reader:
            writer.add_stored(reader.blobs[0], reader.read_stored(reader.blobs[0]))
        size = writer.close()
    foreign = StatisticsFile(snapshot.snapshot_id, location, size, 10, first.blob_metadata)
    table.update_statistics().set_statistics(foreign).commit()
    made = computed(table, ["kind"])
    kept = blobs(table, made)
    assert [(blob.type, blob.fields) for blob, _ in kept.values()] == [
        (BlobType.THETA_SKETCH, (2,)),
        ("histogram-of-others", (3,)),
        (BlobType.THETA_SKETCH, (1,)),
    ]
    assert kept[(3,)][1] == b"xyz"
    assert [*table.metadata.statistics] == [made]


def test_an_older_snapshot_is_counted_by_its_own_schema() -> None:
    table = new_table()
    table.append(rows(range(5)))
    first = table.current_snapshot()
    assert first is not None
    with table.update_schema() as update:
        update.delete_column("value")
    table.append(rows(range(10)).drop(["value"]))
    made = computed(table, snapshot_id=first.snapshot_id)
    assert [distinct_values(blob) for blob, _ in blobs(table, made).values()] == [5, 1, 1]
    assert numbers(table, computed(table)) == {"id": 10, "kind": 1}
    assert len(table.metadata.statistics) == 2


def test_a_table_without_a_snapshot_has_no_statistics() -> None:
    table = new_table()
    assert table.maintenance.compute_table_stats() is None
    with pytest.raises(NoSuchSnapshot):
        table.maintenance.compute_table_stats(snapshot_id=3)
