"""With ``merge_schema`` a write adds the columns that the table lacks, in its own commit."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest
from icefield import Schema, Table
from icefield.errors import InvalidArgument
from icefield.types import NestedField, StringType, StructType
from tables import memory_catalog

SCHEMA = Schema(
    NestedField(1, "id", "int", required=True),
    NestedField(2, "place", StructType(NestedField(3, "city", StringType()))),
)


@pytest.fixture
def table() -> Table:
    return memory_catalog().create_table("db.t", SCHEMA)


def test_new_columns_are_added_in_the_commit_of_the_rows(table: Table) -> None:
    versions = len(table.metadata.metadata_log)
    table.append({"id": pa.array([1], pa.int32()), "note": ["a"]}, merge_schema=True)
    assert (table.columns, len(table.metadata.metadata_log)) == (["id", "place", "note"], versions + 1)
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "place": None, "note": "a"}]


def test_fields_of_structs_are_added_too(table: Table) -> None:
    table.append([{"id": 1, "place": {"city": "Ulm", "code": 89}}], merge_schema=True)
    place = table.schema().find_type("place")
    assert isinstance(place, StructType)
    assert [field.name for field in place.fields] == ["city", "code"]
    assert table.scan().to_arrow()["place"].to_pylist() == [{"city": "Ulm", "code": 89}]


def test_columns_that_the_table_has_stay_as_they_are(table: Table) -> None:
    table.append([{"id": 1, "note": "a"}], merge_schema=True)
    field = table.schema().find_field("id")
    assert (str(field.field_type), field.required) == ("int", True)
    assert not table.schema().find_field("note").required


def test_rows_without_new_columns_leave_the_schema(table: Table) -> None:
    table.append([{"id": 1}], merge_schema=True)
    assert len(table.schemas()) == 1


def test_overwrites_add_columns_too(table: Table) -> None:
    table.append([{"id": 1}])
    table.overwrite([{"id": 2, "a": 1}], merge_schema=True)
    table.dynamic_partition_overwrite([{"id": 3, "b": 1}], merge_schema=True)
    assert table.columns == ["id", "place", "a", "b"]
    assert table.scan().to_arrow()["id"].to_pylist() == [3]


def test_a_new_column_of_nanoseconds_has_microseconds_in_version_2(table: Table) -> None:
    frame = pd.DataFrame({"id": pd.Series([1], dtype="int32"), "at": pd.to_datetime([0], unit="ns")})
    table.append(frame, merge_schema=True)
    assert str(table.schema().find_type("at")) == "timestamp"


def test_a_name_in_another_case_is_refused(table: Table) -> None:
    with pytest.raises(InvalidArgument, match=r"names are compared exactly, and there is a 'id'$"):
        table.append([{"ID": 1}], merge_schema=True)
    assert (len(table.schemas()), table.current_snapshot()) == (1, None)


def test_without_it_the_error_names_the_option(table: Table) -> None:
    with pytest.raises(InvalidArgument, match=r"the table has no such column.*merge_schema=True"):
        table.append([{"id": 1, "note": "a"}])


# -- small conveniences


def test_a_schema_is_an_arrow_schema_for_other_libraries(table: Table) -> None:
    assert pa.schema(table.schema()) == table.schema().to_arrow() == table.scan().to_arrow().schema
    assert str(SCHEMA.to_arrow().field("id").type) == "int32"


def test_a_catalog_is_asked_for_tables_by_name() -> None:
    catalog = memory_catalog()
    catalog.create_table("db.t", SCHEMA)
    assert catalog["db.t"].name() == ("db", "t")
    assert ("db.t" in catalog, ("db", "t") in catalog, "db.u" in catalog) == (True, True, False)


def test_the_head_of_a_scan_has_a_few_rows() -> None:
    table = memory_catalog().create_table_as("db.t", {"id": list(range(100))})
    assert [table.scan().head().num_rows, table.scan().head(7).num_rows, table.scan(limit=2).head().num_rows] == [
        5,
        7,
        2,
    ]
