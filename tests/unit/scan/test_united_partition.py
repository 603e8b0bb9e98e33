"""The partition tuples of all specs of a table as one struct."""

from __future__ import annotations

import pyarrow as pa
import pytest
from icefield.engine import UnitedPartition
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.schema import Schema
from icefield.types import NestedField

SCHEMA = Schema(NestedField(1, "id", "long"), NestedField(2, "kind", "string"), NestedField(3, "day", "date"))
SPECS = (
    PartitionSpec(PartitionField(2, 1001, "identity", "kind"), PartitionField(1, 1000, "bucket[4]", "part"), spec_id=0),
    PartitionSpec(PartitionField(3, 1002, "month", "part"), spec_id=1),
    PartitionSpec(PartitionField(3, 1002, "month", "part"), PartitionField(2, 1001, "identity", "kind"), spec_id=2),
    PartitionSpec(spec_id=3),
)


@pytest.mark.spec("PUF-12")
def test_the_fields_of_all_specs_are_united_in_the_order_of_their_ids() -> None:
    united = UnitedPartition(reversed(SPECS), {spec.spec_id: spec.partition_type(SCHEMA) for spec in SPECS})
    assert [(field.field_id, field.name, str(field.field_type)) for field in united.type.fields] == [
        (1000, "part_1000", "int"),
        (1001, "kind", "string"),
        (1002, "part", "int"),
    ]
    assert not any(field.required for field in united.type.fields)


@pytest.mark.spec("PUF-12")
@pytest.mark.parametrize(
    ("spec_id", "columns", "expected"),
    [
        (0, [["a", None], [3, 1]], [(3, "a", None), (1, None, None)]),
        (1, [[600, 601]], [(None, None, 600), (None, None, 601)]),
        (2, [[600, None], ["a", "b"]], [(None, "a", 600), (None, "b", None)]),
    ],
)
def test_tuples_are_null_in_the_fields_that_their_spec_lacks(
    spec_id: int, columns: list[list[object]], expected: list[tuple[object, ...]]
) -> None:
    types = {spec.spec_id: spec.partition_type(SCHEMA) for spec in SPECS}
    united = UnitedPartition(SPECS, types)
    arrays = [
        pa.array(column, pa.string() if str(field.field_type) == "string" else pa.int32())
        for column, field in zip(columns, types[spec_id].fields, strict=True)
    ]
    tuples = united.tuples(spec_id, pa.StructArray.from_arrays(arrays, [field.name for field in SPECS[spec_id].fields]))
    assert [tuple(row.values()) for row in tuples.to_pylist()] == expected
