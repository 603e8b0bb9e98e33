"""Twice the columns in a merge, an update, a delete key, a check or a list of names take about twice the CPU time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest
from growth import MOST_GROWTH, Work, growth
from icefield.catalog import Table
from icefield.engine import with_dropped
from icefield.partitioning import PartitionSpec
from icefield.scan.deletes.key_columns import columns_of
from icefield.transaction.row_level.assignments import Assignments
from icefield.transaction.row_level.merge_edit import MergeSource
from icefield.types import LongType, NestedField
from icefield.types.arrow.pieces import with_columns
from icefield.types.arrow.types import with_dictionaries
from icefield.writing.deletes.equality_files import EqualityColumns
from icefield_maintenance.table_stats import sketched_columns
from tables import new_table

pytestmark = pytest.mark.slow


def names(count: int) -> list[str]:
    return [f"c{number}" for number in range(count)]


def rows_of(columns: int) -> pa.Table:
    return pa.table({name: pa.array([1, 2], pa.int64()) for name in names(columns)})


def empty_table(columns: int) -> Table:
    return new_table(schema=rows_of(columns).schema)


def filled_table(columns: int) -> Table:
    table = empty_table(columns)
    table.append(rows_of(columns))
    return table


def changing_columns(columns: int) -> Work:
    (batch,) = rows_of(columns).to_batches()
    changed = {place: (field, batch.column(place)) for place, field in enumerate(batch.schema)}
    return lambda: with_columns(batch, changed)


def assigning(columns: int) -> Work:
    (batch,) = rows_of(columns).to_batches()
    made = Assignments(empty_table(columns).schema(), dict.fromkeys(names(columns), 3))
    return lambda: made.apply(batch, batch)


def stating_what_to_assign(columns: int) -> Work:
    schema = empty_table(columns).schema()
    return lambda: Assignments(schema, dict.fromkeys(names(columns), 3))


def assigning_fields_of_a_struct(fields: int) -> Work:
    (batch,) = pa.table({"s": rows_of(fields).to_struct_array()}).to_batches()
    made = Assignments(new_table(schema=batch.schema).schema(), {f"s.{name}": 3 for name in names(fields)})
    return lambda: made.apply(batch, batch)


def taking_a_source(columns: int) -> Work:
    rows, schema = rows_of(columns), empty_table(columns).schema()
    return lambda: MergeSource(rows, {"c0": "c0"}, schema, "source").named()


def picking_columns_to_delete_by(columns: int) -> Work:
    schema, rows = empty_table(columns).schema(), rows_of(columns)
    picked = EqualityColumns(schema, PartitionSpec(), sorted(schema.field_ids))
    return lambda: picked.conforming(rows.schema)


def naming_dictionaries(columns: int) -> Work:
    schema = pa.schema([pa.field(name, pa.string(), metadata={"PARQUET:field_id": "1"}) for name in names(columns)])
    return lambda: with_dictionaries(schema, frozenset({1}))


def asking_for_ids(columns: int) -> Work:
    schema = empty_table(columns).schema()
    return lambda: [field.field_id in schema.field_ids for field in schema.fields]


def reading_dictionaries(columns: int) -> Work:
    table = new_table(schema=pa.schema([(name, pa.string()) for name in names(columns)]))
    table.append(pa.table({name: ["a"] for name in names(columns)}))
    return lambda: replace(table.scan(), dictionary_columns=tuple(names(columns))).to_arrow()


def finding_key_columns(columns: int) -> Work:
    """A key with half of the columns and all fields of a struct."""
    rows = rows_of(columns)
    (batch,) = rows.append_column("s", rows.to_struct_array()).to_batches()
    schema = new_table(schema=batch.schema).schema()
    ids = [id_ for id_ in sorted(schema.field_ids) if schema.find_type(id_).is_primitive]
    return lambda: columns_of(schema, batch, ids[columns // 2 :])


def adding_dropped_columns(columns: int) -> Work:
    schema = empty_table(columns).schema()
    dropped = {id_: NestedField(id_, f"d{id_}", LongType()) for id_ in range(columns + 1, 2 * columns + 1)}
    return lambda: with_dropped(schema, dropped, dropped.keys())


def choosing_columns_to_sketch(columns: int) -> Work:
    schema = empty_table(columns).schema()
    return lambda: sketched_columns(schema, names(columns))


def updating(columns: int) -> Work:
    table = filled_table(columns)
    return lambda: table.update("c0 = 1", dict.fromkeys(names(columns)[1:], 3))


def upserting(columns: int) -> Work:
    table, rows = filled_table(columns), rows_of(columns)
    return lambda: table.upsert(rows.set_column(1, "c1", pa.array([5, 6])), ["c0"])


def merging(columns: int) -> Work:
    table, rows = filled_table(columns), rows_of(columns)
    return lambda: table.merge(rows, ["c0"]).when_matched_update_all().when_not_matched_insert_all().commit()


SHAPES: dict[Callable[[int], Work], int] = {
    changing_columns: 2000,
    assigning: 1000,
    stating_what_to_assign: 2000,
    assigning_fields_of_a_struct: 500,
    taking_a_source: 2000,
    picking_columns_to_delete_by: 1000,
    naming_dictionaries: 2000,
    asking_for_ids: 2000,
    reading_dictionaries: 200,
    finding_key_columns: 1000,
    adding_dropped_columns: 1000,
    choosing_columns_to_sketch: 1000,
    updating: 200,
    upserting: 200,
    merging: 200,
}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_twice_the_columns_take_about_twice_the_time(shape: Callable[[int], Work]) -> None:
    assert growth(shape, SHAPES[shape]) <= MOST_GROWTH
