"""Compaction of columns of every type: rows, ids and sequence numbers stay, and sorted files are sorted."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import count, pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield import Table
from icefield.errors import IcefieldError
from icefield.manifest import schemas as f
from icefield.partitioning.transforms import IdentityTransform
from icefield.schema import Schema, schema_to_arrow
from icefield.types import DecimalType, DoubleType, FloatType, IcebergType, NestedField, parse_type
from icefield.types.values.wkb import wkt_to_wkb
from icefield_maintenance.compaction.strategies import chosen
from plain_rows import comparable, plain_rows
from random_tables import KINDS_OF_V3, row_of, rows_of
from table_model import Column, Columns, as_schema
from tables import again, entries, manifests, new_table, orphans

SPATIAL = ("geometry", "geography")
POINTS = [wkt_to_wkb(text) for text in ("POINT (30 10)", "POINT EMPTY", "LINESTRING (0 0, 1 -1)")]
MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}
FORMATS = ("parquet", "avro", "orc")
LINEAGE = ("_row_id", "_last_updated_sequence_number")


def columns_of(version: int) -> Columns:
    """A column of each type, alone, in a struct, in a list and as the value of a map; all may be null."""
    kinds = [kind for kind in KINDS_OF_V3 if version > 2 or kind not in KINDS_OF_V3[-4:]]
    inside = [kind for kind in kinds if kind != "unknown"]
    return (
        Column("id", "long", True),
        *(Column(f"c{place}", kind) for place, kind in enumerate(kinds)),
        Column("s", "struct", False, tuple(Column(f"c{place}", kind) for place, kind in enumerate(inside))),
        *(Column(f"l{place}", "list", False, (Column("element", kind),)) for place, kind in enumerate(inside)),
        *(
            Column(f"m{place}", "map", False, (Column("key", "string", True), Column("value", kind)))
            for place, kind in enumerate(inside)
        ),
    )


def schema_for(version: int, columns: Columns) -> Schema:
    """The schema of the columns; from version 3 on with columns of shapes."""
    schema = as_schema(columns)
    if version < 3:
        return schema
    ids = count(schema.highest_field_id + 1)
    return Schema(*schema.fields, *(NestedField(next(ids), kind, parse_type(kind)) for kind in SPATIAL))


def appended(table: Table, columns: Columns, chance: Random, first: int) -> int:
    """Append rows with ids from ``first``; gives the next."""
    rows = [row_of(chance, columns) for _ in range(5)] + rows_of(chance, columns, 20)
    for number, row in enumerate(rows, first):
        row |= {"id": number, **{kind: chance.choice([None, *POINTS]) for kind in SPATIAL}}
    schema = schema_to_arrow(table.schema())
    arrays = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    table.append(pa.Table.from_arrays(arrays, schema=schema))
    return first + len(rows)


def sortable(schema: Schema) -> dict[str, IcebergType]:
    """The columns that rows may be sorted by: primitive, and outside of lists and maps."""
    found = {}
    for number, field in schema.id_to_field.items():
        name = schema.find_column_name(number)
        if name and field.field_type.is_primitive and not schema.is_repeated(number):
            found[name] = field.field_type
    return found


def order_of(value: Any, kind: IcebergType) -> Any:
    """The key by which values of a type are ordered."""
    if isinstance(kind, FloatType | DoubleType):
        number = float(value)
        return (math.isnan(number), 0.0 if math.isnan(number) else number, math.copysign(1, number))
    return Decimal(value) if isinstance(kind, DecimalType) else value


def compared(left: Any, right: Any, kind: IcebergType, descending: bool, nulls_first: bool) -> int:
    """Compare two values: below 0 if ``left`` comes first, above 0 if it comes later, else 0."""
    if left is None or right is None:
        return 0 if left is right else (-1 if (left is None) is nulls_first else 1)
    one, other = order_of(left, kind), order_of(right, kind)
    found = (one > other) - (one < other)
    return -found if descending else found


def value_at(row: dict[str, Any], name: str) -> Any:
    """The value of a column that may be in a struct."""
    found: Any = row
    for part in name.split("."):
        found = None if found is None else found[part]
    return found


def rows_with_ids(table: Table) -> tuple[list[str], list[str]]:
    """The rows, and their row lineage, both without an order."""
    found = comparable(plain_rows(table.scan().to_arrow(), table.schema()), table.schema())
    if table.format_version < 3:
        return found, []
    return found, sorted(map(str, table.scan(selected_fields=("id", *LINEAGE)).to_arrow().to_pylist()))


def data_sequence_numbers(table: Table) -> set[int]:
    found: set[int] = set()
    for manifest in manifests(table):
        read = entries(table, manifest)
        found |= set(read.filter(read.live()).column(f.SEQUENCE_NUMBER).to_pylist())
    return found


@pytest.mark.slow
@pytest.mark.spec("SORT-04", "SORT-10", "COMMIT-22", "SNAP-09")
@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**20),
    version=st.sampled_from([2, 3]),
    strategy=st.sampled_from(["binpack", "sort", "zorder"]),
    kind=st.sampled_from(FORMATS),
    memory=st.sampled_from([1 << 12, 1 << 27]),
)
def test_rows_of_every_type_stay_the_same(seed: int, version: int, strategy: str, kind: str, memory: int) -> None:
    chance, columns = Random(seed), columns_of(version)
    given = {"format-version": str(version), "write.format.default": kind, **MERGE_ON_READ}
    table = new_table(schema=schema_for(version, columns), properties=given)
    names = sortable(table.schema())
    ordered = {name: one for name, one in names.items() if IdentityTransform().can_transform(one)}
    chosen_names = chance.sample(sorted(ordered), chance.randint(1, 3))
    keys = [(name, chance.random() < 0.5, chance.random() < 0.5) for name in chosen_names]
    if strategy == "sort":
        with table.update_sort_order() as order:
            for name, descending, first in keys:
                add = order.desc if descending else order.asc
                add(name, null_order="nulls-first" if first else "nulls-last")
    number = 0
    for _ in range(3):
        number = appended(table, columns, chance, number)
    table.delete(f"id in ({number - 1}, 2)")
    before, started = rows_with_ids(table), table.current_snapshot()
    assert started is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chosen, "BUFFER_BYTES", memory)
        made = table.maintenance.rewrite_data_files(
            strategy,  # type: ignore[arg-type]
            zorder_columns=chosen_names if strategy == "zorder" else (),
            rewrite_all=True,
        )
    table = again(table).refresh()
    assert (made.rewritten_data_files, made.added_data_files) == (3, 1)
    assert rows_with_ids(table) == before
    assert not orphans(table)
    assert table.inspect.delete_files().num_rows in (0, 1)
    now = table.current_snapshot()
    assert now is not None
    assert now.operation.value == "replace"
    assert started.sequence_number in data_sequence_numbers(table)
    assert now.sequence_number not in data_sequence_numbers(table)
    (claimed,) = table.inspect.data_files()["sort_order_id"].to_pylist()
    assert (claimed == table.sort_order().order_id) if strategy == "sort" else not claimed
    if strategy == "sort":
        found = plain_rows(table.scan().to_arrow(), table.schema())
        for left, right in pairwise(found):
            signs = [
                compared(value_at(left, name), value_at(right, name), ordered[name], descending, first)
                for name, descending, first in keys
            ]
            assert next((sign for sign in signs if sign), -1) < 0, (keys, left, right)


@pytest.mark.parametrize("version", [2, 3])
def test_columns_without_an_order_are_refused(version: int) -> None:
    table = new_table(schema=schema_for(version, columns_of(version)), properties={"format-version": str(version)})
    appended(table, columns_of(version), Random(1), 0)
    refused = [name for name, kind in sortable(table.schema()).items() if not IdentityTransform().can_transform(kind)]
    assert refused == ([] if version == 2 else [*SPATIAL])
    refused += [one.name for one in columns_of(version) if one.kind == "variant"]
    for name in [*refused, "s", "l0", "m0", "l0.element", "nowhere"]:
        for options in ({"strategy": "sort", "sort_order": [name]}, {"strategy": "zorder", "zorder_columns": [name]}):
            with pytest.raises(IcefieldError, match=name.split(".")[0]):
                table.maintenance.rewrite_data_files(**options, rewrite_all=True)  # type: ignore[arg-type]
