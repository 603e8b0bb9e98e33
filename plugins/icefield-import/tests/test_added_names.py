"""A file without field ids is added only if each of its columns is read as the table's column of the same name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from foreign_files import FORMATS, foreign_file
from icefield import Table
from icefield.abc import PutMode
from icefield.errors import InvalidFile
from tables import new_table

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string())])
FORMAT = pytest.mark.parametrize("file_format", FORMATS)


def foreign(file_format: str, **columns: Any) -> str:
    return foreign_file(file_format, pa.table(columns))


def table_with_mapping(file_format: str, schema: pa.Schema = SCHEMA, **columns: Any) -> Table:
    """A table to which a file without ids was added, so that it has a name mapping."""
    table = new_table(schema=schema)
    table.add_files([foreign(file_format, **(columns or {"id": [1], "kind": ["old"]}))])
    assert table.name_mapping() is not None
    return table


def rows(table: Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def refuse(table: Table, location: str, match: str) -> None:
    before = table.refresh().metadata_location
    with pytest.raises(InvalidFile, match=match) as refused:
        table.add_files([location])
    assert location in str(refused.value)
    assert table.refresh().metadata_location == before


@FORMAT
def test_a_file_is_refused_whose_column_has_a_name_that_was_deleted_and_given_again(file_format: str):
    table = table_with_mapping(file_format)
    table.update_schema().delete_column("kind").commit()
    table.update_schema().add_column("kind", "string").commit()
    refuse(table, foreign(file_format, id=[2], kind=["new"]), "'kind' .* would be read as one that was deleted")
    table.add_files([foreign(file_format, id=[3])])
    assert rows(table) == [{"id": 1, "kind": None}, {"id": 3, "kind": None}]


@FORMAT
def test_a_file_is_refused_whose_column_has_a_name_that_a_rename_set_free(file_format: str):
    table = table_with_mapping(file_format)
    table.update_schema().rename_column("kind", "sort").commit()
    table.add_files([foreign(file_format, id=[2], kind=["old name"])])
    table.update_schema().add_column("kind", "string").commit()
    refuse(table, foreign(file_format, id=[3], kind=["new"]), "'kind' .* column 2, which is called 'sort' now")
    assert rows(table) == [{"id": 1, "sort": "old", "kind": None}, {"id": 2, "sort": "old name", "kind": None}]
    # After the name is free again, it is ambiguous which of the two columns a file means.
    table.update_schema().rename_column("kind", "class").commit()
    refuse(table, foreign(file_format, id=[3], kind=["which"]), "column 2, which is called 'sort' now")
    table.add_files([foreign(file_format, id=[4], **{"class": ["sure"]})])
    assert rows(table)[-1] == {"id": 4, "sort": None, "class": "sure"}


@FORMAT
def test_a_file_is_refused_that_has_a_column_under_its_old_name_and_its_new_one(file_format: str):
    table = table_with_mapping(file_format)
    table.update_schema().rename_column("kind", "sort").commit()
    refuse(table, foreign(file_format, id=[2], kind=["a"], sort=["b"]), "column 'sort' has no field id")


@FORMAT
def test_names_inside_structs_lists_and_maps_count_as_well(file_format: str):
    struct = pa.struct([("a", pa.int64()), ("b", pa.int64())])
    schema = pa.schema([("id", pa.int64()), ("s", struct), ("l", pa.list_(struct))])
    table = table_with_mapping(file_format, schema, id=[1], s=[{"a": 1, "b": 1}], l=[[{"a": 1, "b": 1}]])
    table.update_schema().rename_column(("s", "b"), "c").rename_column(("l", "b"), "c").commit()
    table.update_schema().add_column(("s", "b"), "long").add_column(("l", "b"), "long").commit()
    for name, columns in (("s.b", {"s": [{"b": 2}]}), (r"l\.element\.b", {"l": [[{"b": 2}]]})):
        refuse(table, foreign(file_format, id=[2], **columns), f"'{name}' .* which is called '.*c' now")
    table.add_files([foreign(file_format, id=[3], s=[{"a": 3}], l=[[{"a": 3}]])])
    assert rows(table)[-1] == {"id": 3, "s": {"a": 3, "c": None, "b": None}, "l": [{"a": 3, "c": None, "b": None}]}


@FORMAT
def test_a_column_that_the_stored_mapping_does_not_know_is_refused_unless_it_is_left_out_on_purpose(file_format: str):
    table = new_table(schema=SCHEMA)
    table.set_properties({"schema.name-mapping.default": '[{"field-id": 1, "names": ["id"]}]'})
    refuse(table, foreign(file_format, id=[1], kind=["a"]), "'kind' .* as none that the table has")
    mapping = '[{"field-id": 1, "names": ["id"]}, {"names": ["kind"]}]'
    table.set_properties({"schema.name-mapping.default": mapping})
    table.add_files([foreign(file_format, id=[2], kind=["a"], other=["b"])])
    mapping = '[{"field-id": 1, "names": ["kind"]}, {"field-id": 2, "names": ["id"]}]'
    table.set_properties({"schema.name-mapping.default": mapping})
    table.add_files([foreign(file_format, id=["b"], kind=[3])])  # crosswise, as somebody wished
    assert table.scan("id = 3").to_arrow().to_pylist() == [{"id": 3, "kind": "b"}]


@FORMAT
def test_a_name_that_was_given_again_means_the_column_of_today_where_no_mapping_was_stored(file_format: str):
    table = new_table(schema=SCHEMA)
    table.update_schema().delete_column("kind").commit()
    table.update_schema().add_column("kind", "string").commit()
    table.add_files([foreign(file_format, id=[1], kind=["new"])])
    assert rows(table) == [{"id": 1, "kind": "new"}]


def test_a_file_with_ids_is_refused_where_a_column_lacks_one_that_its_name_would_have_given():
    table = new_table(schema=SCHEMA)
    numbered = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    data = pa.table([[1], ["a"]], schema=pa.schema([numbered, pa.field("kind", pa.string())]))
    sink = pa.BufferOutputStream()
    pq.write_table(data, sink)
    location = foreign("parquet", id=[1])
    table.io.put(location, sink.getvalue().to_pybytes(), PutMode.OVERWRITE)
    refuse(table, location, "'kind' has no field id while others of the file have one")
    nested = pa.struct([pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "4"})])
    table = new_table(schema=pa.schema([("id", pa.int64()), ("s", pa.struct([("a", pa.int64())]))]))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table([[1], [{"a": 1}]], schema=pa.schema([("id", pa.int64()), ("s", nested)])), sink)
    table.io.put(location, sink.getvalue().to_pybytes(), PutMode.OVERWRITE)
    refuse(table, location, "'id' has no field id while others of the file have one")
