"""Folders of files as new tables."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import subprocess
import sys
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest
from bounded import bounded
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield import Catalog
from icefield.errors import FileMissing, IcefieldError, InvalidArgument, InvalidFile, InvalidSchema, TableExists
from icefield_import import import_folder
from icefield_import.folders import partition_type
from icefield_import.text_files import CsvFiles, JsonFiles


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return catalog_in(tmp_path)


def catalog_in(folder: Path) -> Catalog:
    found = icefield.load_catalog("imports", type="directory", warehouse=f"file://{folder}/warehouse")
    found.create_namespace("db")
    return found


def tree(folder: Path, files: Mapping[str, pa.Table | str | bytes]) -> str:
    for name, content in files.items():
        path = folder / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pa.Table):
            (po.write_table if path.suffix == ".orc" else pq.write_table)(content, path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    return f"file://{folder}/data"


def types_of(schema: icefield.Schema) -> dict[str, str]:
    return {field.name: str(field.field_type) for field in schema.fields}


def rows(table: icefield.Table | None) -> list[dict[str, Any]]:
    assert table is not None
    return sorted(table.scan().to_arrow().to_pylist(), key=repr)


# -- files that stay -------------------------------------------------------------------------------------------------


def test_files_stay_where_they_are_and_their_schemas_are_united(catalog: Catalog, tmp_path: Path) -> None:
    folder = tree(
        tmp_path,
        {
            "day=2024-01-31/a.parquet": pa.table({"id": pa.array([1], pa.int32())}),
            "day=__HIVE_DEFAULT_PARTITION__/b.parquet": pa.table({"id": [2**40], "x": ["new"]}),
            "_SUCCESS": "",
            "_temporary/day=1/c.parquet": "no file",
            "day=2024-01-31/.a.parquet.crc": "crc",
        },
    )
    planned = import_folder(catalog, "db.t", folder, dry_run=True)
    assert types_of(planned.schema) == {"id": "long", "x": "string", "day": "date"}
    assert (planned.table, planned.partition_columns, planned.is_in_place) == (None, ("day",), True)
    assert not catalog.table_exists("db.t")
    table = import_folder(catalog, "db.t", folder).table
    assert table is not None
    assert rows(table) == rows(catalog.load_table("db.t"))
    assert [(row["id"], row["x"], str(row["day"])) for row in rows(table)] == [
        (1, None, "2024-01-31"),
        (2**40, "new", "None"),
    ]
    assert {task.file.file_path for task in table.scan().plan_files()} == {each.location for each in planned.files}
    assert len(table.snapshots()) == 1
    with pytest.raises(TableExists):
        import_folder(catalog, "db.t", folder, dry_run=True)


@pytest.mark.parametrize("suffix", ["parquet", "orc"])
def test_types_that_differ_are_refused_with_the_column_and_the_file(
    catalog: Catalog, tmp_path: Path, suffix: str
) -> None:
    files = {f"a.{suffix}": pa.table({"id": [1], "x": [1]}), f"b.{suffix}": pa.table({"id": [1], "x": ["one"]})}
    with pytest.raises(InvalidSchema, match=rf"b\.{suffix} do not go .*'x'"):
        import_folder(catalog, "db.t", tree(tmp_path, files))
    assert not catalog.table_exists("db.t")


def test_several_formats_and_several_layouts_are_refused(catalog: Catalog, tmp_path: Path) -> None:
    folder = tree(tmp_path, {"a.parquet": pa.table({"id": [1]}), "b.orc": pa.table({"id": [1]})})
    with pytest.raises(InvalidArgument, match=r"a\.parquet is parquet, and .*b\.orc is orc"):
        import_folder(catalog, "db.t", folder)
    folder = tree(tmp_path / "other", {"k=1/a.csv": "id\n1\n", "n=1/b.csv": "id\n1\n"})
    with pytest.raises(InvalidArgument, match=r"name the columns 'k', and those of .*b\.csv 'n'"):
        import_folder(catalog, "db.t", folder)
    with pytest.raises(FileMissing, match="no data file"):
        import_folder(catalog, "db.t", f"{folder}/nothing")
    with pytest.raises(
        InvalidArgument, match=r"a\.csv is a file: give the folder of the files, or use table\.add_files"
    ):
        import_folder(catalog, "db.t", f"{folder}/k=1/a.csv")


def test_a_stated_format_and_type_are_taken(catalog: Catalog, tmp_path: Path) -> None:
    folder = tree(tmp_path, {"month=01/000000_0": pa.table({"id": pa.array([1], pa.int32())})})
    made = import_folder(catalog, "db.t", folder, file_format="PARQUET", types={"month": "string", "id": "long"})
    assert rows(made.table) == [{"id": 1, "month": "01"}]
    with pytest.raises(InvalidArgument, match="names column 'nothing', which no file has: there are 'id', 'month'"):
        import_folder(catalog, "db.u", folder, types={"nothing": "int"})


def test_a_file_of_another_table_is_refused_where_its_ids_would_mean_other_columns(
    catalog: Catalog, tmp_path: Path
) -> None:
    source = catalog.create_table("db.source", pa.schema([("id", pa.int64()), ("kind", pa.string())]))
    with source.update_schema() as update:
        update.move_first("kind")
    source.append(pa.table({"kind": ["a"], "id": [1]}))
    (file,) = [task.file.file_path for task in source.scan().plan_files()]
    folder = tree(tmp_path, {"a.parquet": Path(file.removeprefix("file://")).read_bytes()})
    with pytest.raises(InvalidFile, match="has the field id 1 in column 'id'"):
        import_folder(catalog, "db.t", folder)


@pytest.mark.parametrize(
    ("strings", "kind"),
    [
        (["1", "-07", None], "int"),
        (["1", str(2**31)], "long"),
        (["1", str(2**63)], "string"),
        (["2024-01-31", None], "date"),
        (["2024-01-31", "2024-02-30"], "string"),
        (["1", "a"], "string"),
        ([None], "string"),
        (["1.5"], "string"),
    ],
)
def test_the_type_of_a_partition_follows_from_all_its_values(strings: list[str | None], kind: str) -> None:
    assert str(partition_type(strings)) == kind


# -- text ------------------------------------------------------------------------------------------------------------


def test_csv_is_written_into_the_table(catalog: Catalog, tmp_path: Path) -> None:
    folder = tree(
        tmp_path,
        {
            "k=1/a.csv": 'id,amount,note\n1,1.50,"two\nlines"\n2,,""\n',
            "k=2/b.csv.gz": gzip.compress(b"id,extra\n3,2024-01-31\n"),
        },
    )
    made = import_folder(catalog, "db.t", folder, types={"amount": "decimal(9,2)"})
    assert not made.is_in_place
    assert types_of(made.schema) == {
        "id": "long", "amount": "decimal(9,2)", "note": "string", "extra": "date", "k": "int"
    }  # fmt: skip
    found = rows(made.table)
    assert [(row["id"], row["amount"], row["note"], row["k"]) for row in found] == [
        (1, Decimal("1.50"), "two\nlines", 1),
        (2, None, "", 1),
        (3, None, None, 2),
    ]
    assert made.table is not None
    assert all("/data/k=1/a.csv" not in task.file.file_path for task in made.table.scan().plan_files())


def test_only_stated_strings_are_null_in_csv(catalog: Catalog, tmp_path: Path) -> None:
    folder = tree(tmp_path, {"a.csv": 'country,n\nNA,1\n,2\n"",NULL\n'})
    found = import_folder(catalog, "db.t", folder).table
    assert found is not None
    assert found.scan().to_arrow().to_pydict() == {"country": ["NA", None, ""], "n": ["1", "2", "NULL"]}
    found = import_folder(catalog, "db.u", folder, null_values=["NA", "NULL"]).table
    assert found is not None
    assert found.scan().to_arrow().to_pydict() == {"country": [None, "", ""], "n": [1, 2, None]}


def test_json_lines_are_read_by_all_their_columns(catalog: Catalog, tmp_path: Path) -> None:
    lines = [{"id": 1, "s": {"x": [1]}}, {"id": 2, "none": None}, {"id": 3.5, "s": {"y": "z"}}]
    folder = tree(tmp_path, {"a.jsonl": "\n".join(map(json.dumps, lines)), "b.json": '{"other": true}\n\n'})
    made = import_folder(catalog, "db.t", folder)
    assert types_of(made.schema)["id"] == "double"
    assert rows(made.table)[0] == {"id": 1.0, "s": {"x": [1], "y": None}, "none": None, "other": None}
    assert [row["other"] for row in rows(made.table) if row["id"] is None] == [True]


def test_a_column_without_values_has_the_type_of_other_files_or_is_a_string(catalog: Catalog, tmp_path: Path) -> None:
    nothing = pa.table({"id": [1], "n": pa.nulls(1), "all": pa.nulls(1), "s": [{"x": None}], "l": [[None]]})
    filled = pa.table({"id": [2], "n": [5], "s": [{"x": 1.5}], "all": pa.nulls(1)})
    folder = tree(tmp_path, {"a.parquet": nothing, "b.parquet": filled})
    made = import_folder(catalog, "db.t", folder)
    types = types_of(made.schema)
    assert (types["n"], types["all"], types["l"]) == ("long", "string", "list<string>")
    assert rows(made.table) == [
        {"id": 1, "n": None, "s": {"x": None}, "all": None, "l": [None]},
        {"id": 2, "n": 5, "s": {"x": 1.5}, "all": None, "l": None},
    ]
    assert types_of(import_folder(catalog, "db.u", folder, types={"all": "date"}).schema)["all"] == "date"


def test_strings_of_json_are_times_only_if_that_is_stated(catalog: Catalog, tmp_path: Path) -> None:
    lines = [{"id": 1, "t": "2024-01-01T00:00:00+02:00"}, {"id": 2, "t": "2024-01-01T00:00:00Z"}, {"id": 3, "t": None}]
    folder = tree(tmp_path, {"a.json": "\n".join(map(json.dumps, lines))})
    assert rows(import_folder(catalog, "db.t", folder).table) == lines
    midnight = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    made = import_folder(catalog, "db.u", folder, types={"t": "timestamptz"}).table
    assert [row["t"] for row in rows(made)] == [midnight - dt.timedelta(hours=2), midnight, None]


def test_values_of_json_are_cast_to_stated_types_from_their_text(catalog: Catalog, tmp_path: Path) -> None:
    lines = [
        '{"id": 1, "at": "12:30:01.5", "code": 7, "price": 3.50, "day": "2024-01-01", "hash": 12345678901234567890,'
        ' "rest": 0.1}',
        '{"id": 2, "code": "x", "price": "0.05", "rest": {"a": 1}}',
        "",
        '{"id": 3, "code": [true, 1.50], "day": null, "rest": 9007199254740993}',
    ]
    folder = tree(tmp_path, {"a.json": "\n".join(lines[:1]), "b.json": "\n".join(lines[1:])})
    types = {
        "code": "string",
        "price": "decimal(9,2)",
        "day": "date",
        "hash": "decimal(20,0)",
        "rest": "string",
        "at": "time",
    }
    found = rows(import_folder(catalog, "db.t", folder, types=types).table)
    assert [[row[name] for row in found] for name in types] == [
        ["7", "x", "[true, 1.5]"],
        [Decimal("3.50"), Decimal("0.05"), None],
        [dt.date(2024, 1, 1), None, None],
        [Decimal("12345678901234567890"), None, None],
        ["0.1", '{"a": 1}', "9007199254740993"],
        [dt.time(12, 30, 1, 500_000), None, None],
    ]
    with pytest.raises(InvalidFile, match=r"b\.json: .*'x'"):
        import_folder(catalog, "db.u", folder, types={**types, "code": "int"})
    deep = tree(tmp_path / "deep", {"a.json": '{"code": ' + "[" * 5000 + "]" * 5000 + "}"})
    with pytest.raises(InvalidFile, match="recursion"):
        import_folder(catalog, "db.u", deep, types={"code": "string"})


def test_a_delimiter_is_one_character(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"one character, not '\|\|'"):
        import_folder(catalog, "db.t", tree(tmp_path, {"a.csv": "a||b\n"}), delimiter="||")


def test_integers_of_csv_that_no_double_equals_are_strings(catalog: Catalog, tmp_path: Path) -> None:
    text = "hash,x,n\n12345678901234567891,1.5,1\n9223372036854775809,1e300,9007199254740993\n"
    folder = tree(tmp_path, {"a.csv": text})
    found = rows(import_folder(catalog, "db.t", folder).table)
    assert found[0] == {"hash": "12345678901234567891", "x": 1.5, "n": 1}
    assert found[1] == {"hash": "9223372036854775809", "x": 1e300, "n": 2**53 + 1}
    found = rows(import_folder(catalog, "db.u", folder, types={"hash": "decimal(20,0)"}).table)
    assert found[0]["hash"] == Decimal("12345678901234567891")


def test_blocks_of_text_join_to_whole_rows(catalog: Catalog, tmp_path: Path) -> None:
    objects = [{"id": number, "text": "x" * (number % 50)} for number in range(300)]
    folder = tree(tmp_path, {
        "json/a.json": "\n".join(map(json.dumps, objects)),
        "csv/a.csv": "id;text\n" + "".join(f"{each['id']};{each['text']}\n" for each in objects),
    })  # fmt: skip
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    for reader, name in ((JsonFiles(block_bytes=100), "json/a.json"), (CsvFiles(";", block_bytes=100), "csv/a.csv")):
        batches = list(reader.read(catalog.io, f"{folder}/{name}", schema))
        assert len(batches) > 20
        read = pa.Table.from_batches(batches).to_pylist()
        assert [{**row, "text": row["text"] or ""} for row in read] == objects
        assert reader.schema(catalog.io, f"{folder}/{name}") == schema


@pytest.mark.parametrize(
    ("files", "error", "match"),
    [
        ({"a.csv": "id\n1\n", "b.csv": "id\nx\n"}, InvalidSchema, r"b\.csv do not go.*id.*types="),
        ({"a.csv": "id,x\n1\n"}, InvalidFile, r"a\.csv: .*types="),
        ({"a.json": '{"id": 1}\n{"id": "x"}\n'}, InvalidFile, r"a\.json: .*types="),
        ({"a.json": "[1, 2"}, InvalidFile, r"a\.json: "),
        ({"a.json": '[{"id": 1}]'}, InvalidFile, r"a\.json: .*an object on each line"),
    ],
)
def test_text_without_a_common_type_is_refused_with_a_remedy(
    catalog: Catalog, tmp_path: Path, files: dict[str, str], error: type[IcefieldError], match: str
) -> None:
    with pytest.raises(error, match=match):
        import_folder(catalog, "db.t", tree(tmp_path, files))
    assert not catalog.table_exists("db.t")


def test_a_type_that_a_later_value_does_not_have_is_refused_until_it_is_stated(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tree(tmp_path, {"a.csv": "id\n" + "1\n" * 100 + "many\n"})
    monkeypatch.setattr("icefield_import.folder_import.CsvFiles", lambda *given: CsvFiles(*given, block_bytes=50))
    with pytest.raises(InvalidFile, match=r"a\.csv: .*'many'.*types="):
        import_folder(catalog, "db.t", folder)
    assert import_folder(catalog, "db.t", folder, types={"id": "string"}).table.scan().count() == 101  # type: ignore[union-attr]


@pytest.mark.slow
def test_text_is_imported_in_bounded_memory(catalog: Catalog, tmp_path: Path) -> None:
    line = ",".join(["123456789"] * 10) + "\n"
    folder = tree(tmp_path, {"a.csv": ",".join(f"c{n}" for n in range(10)) + "\n" + line * 4_000_000})
    with bounded(seconds=120, megabytes=600):
        made = import_folder(catalog, "db.t", folder)
    assert made.table is not None
    assert made.table.scan().count() == 4_000_000


# -- differential ----------------------------------------------------------------------------------------------------

_VALUES = {"int": st.integers(-(2**31), 2**31 - 1), "str": st.text("aé/=% ", min_size=1, max_size=4)}
_FILES = st.lists(
    st.tuples(
        st.none() | _VALUES["int"],
        st.none() | _VALUES["str"],
        st.sampled_from([pa.int32(), pa.int64()]),
        st.booleans(),
        st.lists(st.none() | st.integers(-9, 9), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(files=_FILES)
def test_random_folders_are_imported_as_pyarrow_reads_them(
    files: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("folder")
    schema = pa.schema([("n", pa.int64()), ("x", pa.string()), ("i", pa.int64()), ("s", pa.string())])
    layout = ds.partitioning(pa.schema([("i", pa.int64()), ("s", pa.string())]), flavor="hive")
    for number, (i, s, kind, has_text, values) in enumerate(files):
        columns = {"n": pa.array(values, kind), **({"x": pa.array(["t"] * len(values))} if has_text else {})}
        columns |= {"i": pa.array([i] * len(values), pa.int64()), "s": pa.array([s] * len(values), pa.string())}
        ds.write_dataset(
            pa.table(columns), folder / "data", format="parquet", partitioning=layout,
            basename_template=f"{number}-{{i}}.parquet", existing_data_behavior="overwrite_or_ignore",
        )  # fmt: skip
    expected = ds.dataset(folder / "data", schema, partitioning=layout).to_table()
    made = import_folder(catalog_in(folder), "db.t", folder / "data", types={"i": "long", "s": "string"})
    assert made.table is not None
    found = made.table.scan().to_arrow()
    names = [name for name in schema.names if name in found.schema.names]
    assert {"n", "i", "s"} <= {*names}

    def plain(table: pa.Table) -> list[str]:
        return sorted(map(repr, table.select(names).to_pylist()))

    assert plain(found) == plain(expected)


def test_a_link_to_a_file_of_the_folder_is_no_second_file(catalog: Catalog, tmp_path: Path) -> None:
    place = tmp_path / "data"
    place.mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), place / "part-9.parquet")
    (place / "latest.parquet").symlink_to("part-9.parquet")
    (tmp_path / "outside.parquet").write_bytes((place / "part-9.parquet").read_bytes())
    (place / "other.parquet").symlink_to(tmp_path / "outside.parquet")
    made = import_folder(catalog, "db.t", f"file://{place}")
    assert [each.location.rpartition("/")[2] for each in made.files] == ["other.parquet", "part-9.parquet"]
    assert made.table is not None
    assert made.table.scan().count() == 4
    with pytest.raises(InvalidArgument, match="added twice, as"):
        made.table.add_files([f"file://{place}/{name}.parquet" for name in ("latest", "part-9")])


def test_a_link_between_folders_of_two_values_is_refused(catalog: Catalog, tmp_path: Path) -> None:
    for day in (1, 2):
        (tmp_path / f"data/day={day}").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), tmp_path / "data/day=1/a.parquet")
    (tmp_path / "data/day=2/a.parquet").symlink_to(tmp_path / "data/day=1/a.parquet")
    with pytest.raises(InvalidArgument, match="are one file"):
        import_folder(catalog, "db.t", f"file://{tmp_path}/data")


# -- the command -----------------------------------------------------------------------------------------------------


def test_the_command_shows_and_makes_the_table(tmp_path: Path) -> None:
    tree(tmp_path, {"k=1/a.csv": "id|x\n1|a\n"})
    catalog_in(tmp_path)

    def run(*words: str) -> str:
        options = ["--catalog", "imports", "-p", "type=directory", "-p", f"warehouse=file://{tmp_path}/warehouse"]
        command = [Path(sys.executable).with_name("icefield"), *words, *options, "--output", "json"]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return ran.stdout

    def lines(*words: str) -> list[Any]:
        return [json.loads(line) for line in run(*words).splitlines()]

    given = ["import", "db.t", "data", "--delimiter", "|", "--type", "id=int"]
    assert lines(*given, "--dry-run") == [
        {"column": "id", "type": "int", "partition": None},
        {"column": "x", "type": "string", "partition": None},
        {"column": "k", "type": "int", "partition": "identity"},
    ]
    assert lines("tables", "db") == []
    said = json.loads(run(*given))
    assert (said["files"], said["format"], said["in_place"]) == (1, "csv", False)
    assert lines("scan", "db.t") == [{"id": 1, "x": "a", "k": 1}]


def test_tabs_separate_the_columns_of_tsv(catalog: Catalog, tmp_path: Path) -> None:
    made = import_folder(catalog, "db.t", tree(tmp_path, {"a.tsv": "a\tb,c\n1\tx\n"}))
    assert rows(made.table) == [{"a": 1, "b,c": "x"}]


@pytest.mark.parametrize(
    "files",
    [
        {"a.parquet": pa.table({"Id": [1]}), "b.parquet": pa.table({"id": [2]})},
        {"a.csv": "id\n1\n", "b.csv": "ID\n2\n"},
        {"ID=1/a.csv": "id\n1\n"},
    ],
    ids=["parquet", "csv", "folders"],
)
def test_columns_that_differ_in_case_only_are_refused(catalog: Catalog, tmp_path: Path, files: Any) -> None:
    with pytest.raises(InvalidSchema, match="differ in case only"):
        import_folder(catalog, "db.t", tree(tmp_path, files))
    assert not catalog.table_exists("db.t")


def test_text_that_is_no_utf_8_is_refused(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="column 'a' is no UTF-8"):
        import_folder(catalog, "db.t", tree(tmp_path, {"a.csv": "a\ncafé\n".encode("latin-1")}))


def test_a_column_that_two_folders_name_is_refused(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="two folders of one path name the column 'k'"):
        import_folder(catalog, "db.t", tree(tmp_path, {"k=1/k=2/a.parquet": pa.table({"id": [1]})}))


def test_codes_that_are_no_utf_8_stay_as_they_are(catalog: Catalog, tmp_path: Path) -> None:
    files = {"k=%FF/a.parquet": pa.table({"id": [1]}), "k=%FE/a.parquet": pa.table({"id": [2]})}
    made = import_folder(catalog, "db.t", tree(tmp_path, files))
    assert [row["k"] for row in rows(made.table)] == ["%FF", "%FE"]
