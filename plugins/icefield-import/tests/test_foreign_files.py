"""Reasons for refusing a foreign file: nulls, row ids, folders, spellings, names; and the detection of its format."""

from __future__ import annotations

import itertools
import uuid
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from foreign_files import FORMATS, foreign_file
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield import MemoryFileSystem, Plugins, Table
from icefield.errors import InvalidArgument, InvalidFile, MissingPlugin
from icefield.storage import FileIO, HashedLocations
from tables import ids, new_table, rows

FORMAT = pytest.mark.parametrize("file_format", FORMATS)


def unchanged(table: Table) -> bool:
    return table.refresh().metadata_location == table.metadata_location and not table.snapshots()


# -- nulls in required columns ---------------------------------------------------------------------------------------

_INT = pa.int64()
_PART = pa.struct([pa.field("a", _INT, nullable=False), pa.field("b", _INT)])
_MAP = pa.map_(pa.string(), pa.field("value", _INT, nullable=False))
SHAPES: dict[str, tuple[pa.Field, Any, Any]] = {
    "c": (pa.field("c", _INT, nullable=False), 1, None),
    "c.a": (pa.field("c", _PART), {"a": 1, "b": None}, {"a": None, "b": 1}),
    "c: a struct": (pa.field("c", _PART, nullable=False), {"a": 1, "b": 1}, None),
    "c.element": (pa.field("c", pa.list_(pa.field("element", _INT, nullable=False))), [1, 2], [1, None]),
    "c: a list": (pa.field("c", pa.list_(_INT), nullable=False), [None], None),
    "c.value": (
        pa.field("c", pa.map_(pa.string(), pa.field("value", _INT, nullable=False))),
        [("k", 1)],
        [("k", None)],
    ),
    "c.element.a": (
        pa.field("c", pa.list_(pa.field("element", _PART))),
        [{"a": 1, "b": 1}, None],
        [{"a": None, "b": 1}],
    ),
}


@FORMAT
@pytest.mark.parametrize("name", SHAPES)
def test_a_null_in_a_required_column_keeps_a_file_out_at_any_depth(file_format: str, name: str) -> None:
    field, good, bad = SHAPES[name]
    table = new_table(schema=pa.schema([("id", _INT), field]))
    column = name.partition(":")[0]
    loose = _optional(field.type)
    with pytest.raises(InvalidFile, match=f"column '{column}' is required in the table and holds a null"):
        table.add_files(foreign_file(file_format, pa.table({"id": [1, 2], "c": pa.array([good, bad], loose)})))
    assert unchanged(table)
    values = [good, None] if field.nullable else [good, good]
    table.add_files(foreign_file(file_format, pa.table({"id": [1, 2], "c": pa.array(values, loose)})))
    assert table.scan().to_arrow()["c"].to_pylist() == values
    table.maintenance.rewrite_data_files(rewrite_all=True)
    table.delete("id = 1")


def _optional(kind: pa.DataType) -> pa.DataType:
    """The same type with all fields nullable, as most writers declare them."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(child.name, _optional(child.type)) for child in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _optional(kind.item_type))
    return pa.list_(_optional(kind.value_type)) if pa.types.is_list(kind) else kind


def put(data: pa.Table, **options: Any) -> str:
    sink = pa.BufferOutputStream()
    pq.write_table(data, sink, **options)
    location = f"memory://foreign/{uuid.uuid4().hex}.parquet"
    MemoryFileSystem.files[location] = (sink.getvalue().to_pybytes(), 0)
    return location


def numbered(kind: pa.DataType = _INT, number: str = "1", *, nullable: bool = True) -> pa.Schema:
    return pa.schema([pa.field("id", kind, nullable=nullable, metadata={"PARQUET:field_id": number})])


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("values", [[1, None], [None, None], [None], [1, 2], []])
def test_a_file_with_ids_is_judged_by_its_counts_or_else_by_its_values(statistics: bool, values: list[Any]) -> None:
    table = new_table(schema=pa.schema([pa.field("id", _INT, nullable=False)]))
    location = put(pa.table([pa.array(values, _INT)], schema=numbered()), write_statistics=statistics)
    if None in values:
        with pytest.raises(InvalidFile, match="'id' is required"):
            table.add_files(location)
    else:
        table.add_files(location)
        assert ids(table) == values


def test_counts_and_required_columns_of_a_file_spare_reading_it(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema([pa.field("id", _INT, nullable=False)])
    data = pa.table([pa.array([1, 2], _INT)], schema=numbered())
    strict = pa.table([pa.array([3], _INT)], schema=numbered(nullable=False))
    found = [put(data), put(strict, write_statistics=True)]
    from icefield_import import checks

    monkeypatch.setattr(checks, "check_nulls", lambda *_: pytest.fail("the file was read"))
    table = new_table(schema=schema)
    table.add_files(found)
    assert ids(table) == [1, 2, 3]


# -- ids of rows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_file_that_states_ids_of_its_rows_is_refused(version: str) -> None:
    source = new_table(**{"format-version": "3"})
    source.append(rows([1, 2, 3]))
    source.append(rows([4]))
    source.maintenance.rewrite_data_files(rewrite_all=True)
    (location,) = source.inspect.data_files()["file_path"].to_pylist()
    table = new_table(**{"format-version": version})
    table.append(rows([9, 8]))
    before = table.metadata_location
    with pytest.raises(InvalidArgument, match=r"row lineage .* '_row_id'"):
        table.add_files(location)
    assert table.refresh().metadata_location == before


def test_a_column_for_row_ids_that_holds_none_is_no_obstacle() -> None:
    fields = [*numbered(), pa.field("_row_id", _INT, metadata={"PARQUET:field_id": "2147483540"})]
    table = new_table(schema=pa.schema([("id", _INT)]), **{"format-version": "3"})
    table.append(pa.table({"id": [9, 8]}))
    table.add_files(put(pa.table([[1, 2], pa.nulls(2, _INT)], schema=pa.schema(fields))))
    found = table.scan(selected_fields=("_row_id",)).to_arrow()["_row_id"].to_pylist()
    assert sorted(found) == [0, 1, 2, 3]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(["append", "add", "rewrite", "delete"]), max_size=6))
def test_row_ids_stay_unique_whatever_files_are_added(steps: list[str]) -> None:
    table = new_table(**{"format-version": "3"})
    other = new_table(**{"format-version": "3"})
    numbers = itertools.count(1)
    for step in steps:
        if step == "append":
            table.append(rows([next(numbers), next(numbers)]))
        elif step == "rewrite":
            table.maintenance.rewrite_data_files(rewrite_all=True)
        elif step == "delete":
            table.delete(f"id = {next(numbers) - 1}")
        else:
            other.append(rows([next(numbers)]))
            table.add_files(next(iter(other.scan().plan_files())).file.file_path, check_duplicate_files=False)
            other.delete()
    found = table.scan(selected_fields=("_row_id",)).to_arrow()["_row_id"].to_pylist()
    assert len(set(found)) == len(found)
    assert None not in found


# -- folders ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [None, ["kind"], ["bucket[4](kind)"]])
@pytest.mark.parametrize("folder", ["kind=a", "KIND=a", "id_x=3/kind=a%2F1/deeper", "kind=__HIVE_DEFAULT_PARTITION__"])
def test_a_folder_that_names_a_value_of_a_lacking_column_keeps_a_file_out(spec: Any, folder: str) -> None:
    table = new_table(spec, schema=pa.schema([("id", _INT), ("kind", pa.string())]))
    location = f"memory://hive/{uuid.uuid4().hex}/{folder}/000000_0"
    MemoryFileSystem.files[location] = MemoryFileSystem.files[put(pa.table({"id": [1]}))]
    with pytest.raises(InvalidArgument, match=r"no column 'kind'.*partition_values=\{location: \{'kind'"):
        table.add_files(location)
    assert unchanged(table)
    if spec == ["kind"]:
        table.add_files(location, partition_values={location: {"kind": "a"}})
        assert ids(table, "kind = 'a'") == [1]


# -- one file, several spellings -------------------------------------------------------------------------------------


def local_table(folder: Path) -> Table:
    catalog = icefield.load_catalog("local", type="directory", warehouse=f"file://{folder}/wh")
    catalog.create_namespace("db")
    return catalog.create_table("db.t", pa.schema([("id", _INT)]))


def spellings(path: Path) -> list[str]:
    linked = path.parent.parent / f"link-{path.parent.name}"
    if not linked.exists():
        linked.symlink_to(path.parent)
    folder, name = path.parent, path.name
    return [
        f"file://{path}",
        f"file:{path}",
        f"FILE://{path}",
        str(path),
        f"file://{folder}//{name}",
        f"file:///{str(folder).lstrip('/')}/./{name}",
        f"{folder}/../{folder.name}/{name}",
        f"file://{linked}/{name}",
    ]


def test_a_file_is_added_once_however_its_location_is_spelled(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1]}), folder / "f.parquet")
    named = spellings(folder / "f.parquet")
    table = local_table(tmp_path / "empty")
    for first, second in itertools.permutations(named, 2):
        with pytest.raises(InvalidArgument, match="added twice"):
            table.add_files([first, second])
    for number, first in enumerate(named):
        table = local_table(tmp_path / str(number))
        table.add_files(first)
        for second in named[number:]:
            with pytest.raises(InvalidArgument, match="in the table already"):
                table.add_files(second)
        assert table.scan().count() == 1


def test_a_file_that_the_table_wrote_itself_is_not_added_under_another_spelling(tmp_path: Path) -> None:
    table = local_table(tmp_path)
    table.append(pa.table({"id": [1]}))
    (location,) = table.inspect.data_files()["file_path"].to_pylist()
    for each in spellings(Path(location.removeprefix("file://"))):
        with pytest.raises(InvalidArgument, match="in the table already"):
            table.add_files(each)


def test_what_a_map_leads_to_one_place_is_one_file() -> None:
    location = put(pa.table({"id": [1]}))
    table = new_table(
        schema=pa.schema([("id", _INT)]),
        catalog=_mapped(),
    )
    table.add_files(location)
    with pytest.raises(InvalidArgument, match="in the table already"):
        table.add_files(location.replace("memory://foreign", "hdfs://name:9000/old"))


def _mapped() -> Any:
    from tables import memory_catalog

    return memory_catalog(**{"location.map.hdfs://name:9000/old": "memory://foreign"})


def test_schemes_of_one_store_are_one_place() -> None:
    places = HashedLocations(FileIO(Plugins.installed()), "s3://bucket/table")
    found = {places.place(f"{scheme}://bucket/a/f.parquet") for scheme in ("s3", "s3a", "s3n", "S3")}
    assert len(found) == 1
    assert places.place("s3://bucket/a//f.parquet") not in found
    assert places.place("s3://other/a/f.parquet") not in found


# -- formats ---------------------------------------------------------------------------------------------------------


@FORMAT
@pytest.mark.parametrize("name", ["000000_0", "part-00000", "f.parq", "f.snappy", "a.b/c"])
def test_the_first_bytes_of_a_file_without_a_known_suffix_say_its_format(file_format: str, name: str) -> None:
    table = new_table(schema=pa.schema([("id", _INT)]))
    location = f"memory://foreign/{uuid.uuid4().hex}/{name}"
    MemoryFileSystem.files[location] = MemoryFileSystem.files[foreign_file(file_format, pa.table({"id": [1]}))]
    table.add_files(location)
    assert ids(table) == [1]
    assert table.inspect.data_files()["file_format"].to_pylist() == [file_format.upper()]


def test_a_stated_format_counts_before_the_suffix() -> None:
    location = f"memory://foreign/{uuid.uuid4().hex}/f.avro"
    MemoryFileSystem.files[location] = MemoryFileSystem.files[put(pa.table({"id": [1]}))]
    table = new_table(schema=pa.schema([("id", _INT)]))
    with pytest.raises(InvalidFile):
        table.add_files(location)
    with pytest.raises(MissingPlugin, match="nosuch"):
        table.add_files(location, file_format="nosuch")
    with pytest.raises(InvalidFile):
        table.add_files(location, file_format="orc")
    table.add_files(location, file_format="PARQUET")
    assert ids(table) == [1]


@pytest.mark.parametrize("content", [b"", b"P", b"OR", b"id,kind\n1,a\n"])
def test_a_file_of_no_known_format_is_refused(content: bytes) -> None:
    location = f"memory://foreign/{uuid.uuid4().hex}/f"
    MemoryFileSystem.files[location] = (content, 0)
    with pytest.raises(InvalidArgument, match=r"by its name or its first bytes.*file_format"):
        new_table().add_files(location)


# -- names -----------------------------------------------------------------------------------------------------------


@FORMAT
@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({"ID": [1], "kind": ["a"]}, "column 'ID' is 'id' in the table"),
        ({"id": [1], "KIND": ["a"]}, "column 'KIND' is 'kind' in the table"),
        ({"id": [1], "s": [{"A": 1}]}, "column 's.A' is 's.a' in the table"),
        ({"id": [1], "l": [[{"A": 1, "b": 1}]]}, r"column 'l\.element\.A' is 'l\.element\.a' in the table"),
        ({"foo": [1]}, "no column of the table.*it has 'foo', the table 'id', 'kind'"),
        ({"id": [1], "s": [{"foo": 1}]}, r"no field of 's' of the table"),
        ({"id": [1], "l": [[{"foo": 1}]]}, r"no field of 'l\.element' of the table"),
    ],
)
def test_columns_that_would_be_read_as_nulls_for_their_names_are_refused(
    file_format: str, columns: dict[str, Any], match: str
) -> None:
    part = pa.struct([("a", _INT), ("b", _INT)])
    table = new_table(schema=pa.schema([("id", _INT), ("kind", pa.string()), ("s", part), ("l", pa.list_(part))]))
    with pytest.raises(InvalidFile, match=match):
        table.add_files(foreign_file(file_format, pa.table(columns)))
    assert unchanged(table)


@FORMAT
def test_a_name_in_another_case_is_read_where_the_mapping_has_it_and_left_out_where_the_column_is_there(
    file_format: str,
) -> None:
    table = new_table(schema=pa.schema([("id", _INT), ("kind", pa.string())]))
    table.add_files(foreign_file(file_format, pa.table({"id": [1], "kind": ["a"], "Kind": ["b"], "more": [1]})))
    mapping = '[{"field-id": 1, "names": ["id", "ID"]}, {"field-id": 2, "names": ["kind", "KIND"]}]'
    table.set_properties({"schema.name-mapping.default": mapping})
    table.add_files(foreign_file(file_format, pa.table({"ID": [2], "KIND": ["c"]})))
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "kind": "a"},
        {"id": 2, "kind": "c"},
    ]
