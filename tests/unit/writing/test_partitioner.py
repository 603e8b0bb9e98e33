"""Rows distinguished by partition."""

import math
import struct
from collections import defaultdict

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.partitioning.spec import normalised_key
from icefield.schema import Schema, schema_to_arrow
from icefield.types import NestedField, StructType
from icefield.writing.data_writer import Partitioner

SCHEMA = Schema(
    NestedField(1, "i", "long"),
    NestedField(2, "t", "string"),
    NestedField(3, "d", "double"),
    NestedField(4, "s", StructType(NestedField(5, "x", "int"))),
    NestedField(6, "day", "date"),
)
BITS = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])
ROWS = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1),
        "t": st.none() | st.sampled_from(["a", "ab", "b", ""]),
        "d": st.none() | st.sampled_from([0.0, -0.0, math.nan, -math.nan, 1.5]) | BITS,
        "s": st.none() | st.fixed_dictionaries({"x": st.none() | st.integers(0, 2)}),
        "day": st.none() | st.dates(),
    }
)
FIELDS = (
    PartitionField(1, 1000, "bucket[4]", "i_bucket"),
    PartitionField(2, 1001, "identity", "t"),
    PartitionField(3, 1002, "identity", "d"),
    PartitionField(5, 1003, "identity", "x"),
    PartitionField(6, 1004, "month", "day_month"),
    PartitionField(1, 1005, "void", "gone"),
    PartitionField(1, 1006, "identity", "i"),
)


def expected(spec, rows):
    """The expected partitions, computed row by row."""
    groups = defaultdict(list)
    for number, row in enumerate(rows):
        values = []
        for field in spec.fields:
            path = SCHEMA.name_path(field.source_id)
            value = row
            for name in path:
                value = None if value is None else value[name]
            kind = SCHEMA.find_field(field.source_id).field_type
            if str(kind) == "date" and value is not None:
                value = value.toordinal() - 719_163
            values.append(field.transform.apply_value(value, kind))
        groups[normalised_key(values)].append(number)
    return dict(groups)


@pytest.mark.spec("PART-03", "PART-04", "PART-24", "PART-02")
@settings(max_examples=120, deadline=None)
@given(rows=st.lists(ROWS, min_size=1, max_size=30), chosen=st.sets(st.sampled_from(range(len(FIELDS))), min_size=1))
def test_each_row_goes_to_the_partition_of_its_own_values_and_keeps_its_place(rows, chosen):
    spec = PartitionSpec(*(FIELDS[number] for number in sorted(chosen)))
    batch = pa.RecordBatch.from_pylist(rows, schema=schema_to_arrow(SCHEMA))
    found = {}
    for values, indices in Partitioner(spec, SCHEMA).split(batch):
        assert normalised_key(values) not in found
        found[normalised_key(values)] = list(range(len(rows))) if indices is None else indices.to_pylist()
    assert found == expected(spec, rows)


def test_a_slice_of_a_batch_is_split_as_its_rows_are():
    rows = [{"i": n, "t": "ab"[n % 2], "d": float(n % 3), "s": {"x": n % 2}, "day": None} for n in range(50)]
    spec = PartitionSpec(*FIELDS[1:4])
    batch = pa.RecordBatch.from_pylist(rows, schema=schema_to_arrow(SCHEMA)).slice(7, 20)
    found = {normalised_key(values): rows_.to_pylist() for values, rows_ in Partitioner(spec, SCHEMA).split(batch)}
    assert found == expected(spec, rows[7:27])


@pytest.mark.parametrize("count", [300, 70_000])
def test_many_partitions_of_several_fields_are_stated_apart(count):
    """More combinations than fit into small keys, and more possible combinations than fit into 31 bits."""
    fields = [PartitionField(number + 1, 1000 + number, "identity", f"p{number}") for number in range(4)]
    schema = Schema(*(NestedField(number + 1, f"p{number}", "long") for number in range(4)))
    columns = [pa.array([(n * factor) % count for n in range(count)]) for factor in (1, 7, 11, 13)]
    batch = pa.RecordBatch.from_arrays(columns, schema=schema_to_arrow(schema))
    found = list(Partitioner(PartitionSpec(*fields), schema).split(batch))
    assert len(found) == count
    assert all(len(rows) == 1 for _, rows in found)
    for values, rows in found[:: count // 50]:
        assert values == tuple(column[rows[0].as_py()].as_py() for column in columns)


def test_one_partition_takes_the_whole_batch_as_it_is():
    batch = pa.RecordBatch.from_pylist([{"t": "a"}, {"t": "a"}], schema=schema_to_arrow(SCHEMA))
    assert list(Partitioner(PartitionSpec(FIELDS[1]), SCHEMA).split(batch)) == [(("a",), None)]
