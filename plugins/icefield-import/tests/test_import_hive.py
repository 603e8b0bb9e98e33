"""Tables of a Hive metastore as new tables, from files that pyarrow writes."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from icefield import Catalog
from icefield.errors import (
    FileMissing,
    IcefieldError,
    InvalidArgument,
    InvalidSchema,
    MissingPlugin,
    NoSuchTable,
    TableExists,
    UnsupportedFeature,
)
from icefield_hive.client import Metastore
from icefield_hive.messages import CREATE_DATABASE, CREATE_TABLE, EXCEPTION, STORAGE, Method
from icefield_hive.structs import I32, STRING, STRINGS, ListOf, Struct
from icefield_import import ImportedFolder, import_hive
from servers.hive import drop_databases

_PARTITION = Struct(
    "Partition",
    {
        "values": (1, ListOf(STRING)),
        "dbName": (2, STRING),
        "tableName": (3, STRING),
        "sd": (6, STORAGE),
        "parameters": (7, STRINGS),
    },
)
ADD_PARTITIONS = Method(
    "add_partitions",
    Struct("arguments", {"new_parts": (1, ListOf(_PARTITION))}),
    Struct(
        "answer",
        {"success": (0, I32), "InvalidObject": (1, EXCEPTION), "AlreadyExists": (2, EXCEPTION), "Meta": (3, EXCEPTION)},
    ),
)
_IO = "org.apache.hadoop.hive.ql.io."
CLASSES = {
    "parquet": (f"{_IO}parquet.MapredParquetInputFormat", f"{_IO}parquet.MapredParquetOutputFormat"),
    "orc": (f"{_IO}orc.OrcInputFormat", f"{_IO}orc.OrcOutputFormat"),
    "text": ("org.apache.hadoop.mapred.TextInputFormat", f"{_IO}HiveIgnoreKeyTextOutputFormat"),
}
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "kind": ["a", None]})
NULL = "__HIVE_DEFAULT_PARTITION__"


class Legacy:
    """The database ``legacy`` of a metastore, and its folder."""

    def __init__(self, uri: str, folder: Path) -> None:
        self.uri, self.folder = uri, folder
        self._metastore = Metastore("legacy", {"uri": uri})
        self._metastore.ask(CREATE_DATABASE, {"name": "legacy", "locationUri": f"file:{folder}"})

    def create(
        self,
        name: str,
        columns: dict[str, str],
        *,
        partitioned: dict[str, str] | None = None,
        parameters: dict[str, str] | None = None,
        file_format: str = "parquet",
        kind: str = "EXTERNAL_TABLE",
        **storage: Any,
    ) -> Path:
        """Create a table, and return its folder."""
        place = self.folder / name
        given = {"EXTERNAL": "TRUE"} if kind == "EXTERNAL_TABLE" else {}
        record = {
            "tableName": name,
            "dbName": "legacy",
            "owner": "someone",
            "sd": {**self._storage(place, file_format, columns), **storage},
            "partitionKeys": [{"name": key, "type": value} for key, value in (partitioned or {}).items()],
            "parameters": {**given, **(parameters or {})},
            "tableType": kind,
        }
        self._metastore.ask(CREATE_TABLE, record, {"properties": {}})
        return place

    def add(self, name: str, *partitions: tuple[tuple[str, ...], Path], file_format: str = "parquet") -> None:
        """Add partitions of a table: their values and folders."""
        found = [
            {
                "values": list(values),
                "dbName": "legacy",
                "tableName": name,
                "sd": self._storage(place, file_format, {"id": "bigint"}),
                "parameters": {},
            }
            for values, place in partitions
        ]
        self._metastore.ask(ADD_PARTITIONS, found)

    def close(self) -> None:
        self._metastore.close()

    @staticmethod
    def _storage(place: Path, file_format: str, columns: dict[str, str]) -> dict[str, Any]:
        source, sink = CLASSES[file_format]
        return {
            "cols": [{"name": name, "type": kind, "comment": f"about {name}"} for name, kind in columns.items()],
            "location": f"file:{place}",
            "inputFormat": source,
            "outputFormat": sink,
            "numBuckets": -1,
            "serdeInfo": {"serializationLib": "serde", "parameters": {"serialization.format": "1"}},
            "bucketCols": [],
            "parameters": {},
        }


@pytest.fixture
def legacy(hive: str, tmp_path: Path) -> Iterator[Legacy]:
    drop_databases(hive)
    found = Legacy(hive, tmp_path / "legacy")
    yield found
    found.close()
    drop_databases(hive)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    found = icefield.load_catalog("lake", type="directory", warehouse=f"file://{tmp_path}/lake")
    found.create_namespace("db")
    return found


def write(table: pa.Table, place: Path, name: str = "000000_0") -> None:
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, place / name)


def imported(catalog: Catalog, legacy: Legacy, name: str, **options: Any) -> ImportedFolder:
    return import_hive(catalog, f"db.{name}", f"legacy.{name}", metastore=legacy.uri, **options)


def rows(made: ImportedFolder, by: str = "id") -> list[dict[str, Any]]:
    assert made.table is not None
    return sorted(made.table.scan().to_arrow().to_pylist(), key=lambda row: row[by])


def test_partitions_come_from_the_metastore_wherever_their_folders_are(
    catalog: Catalog, legacy: Legacy, tmp_path: Path
) -> None:
    kinds = {"day": "date", "kind": "string", "n": "int"}
    place = legacy.create("t", {"id": "bigint", "v": "string"}, partitioned=kinds)
    one, far, null, gone = place / "day=2024-01-01/kind=a%2Fb/n=1", tmp_path / "far", place / "x", place / "gone"
    write(pa.table({"id": pa.array([1], pa.int64()), "v": ["x"]}), one)
    write(pa.table({"id": pa.array([2], pa.int64()), "v": ["y"]}), far)
    write(pa.table({"id": pa.array([3], pa.int64()), "v": pa.array([None], pa.string())}), null)
    write(ROWS, one, "_SUCCESS")
    write(ROWS, one / ".hive-staging_1", "part")
    write(ROWS, place / "not-a-partition")
    legacy.add("t", (("2024-01-01", "a/b", "01"), one), (("2024-01-02", "é=1", "2"), far))
    legacy.add("t", ((NULL, NULL, NULL), null), (("2024-01-03", "", "3"), gone))
    planned = imported(catalog, legacy, "t", dry_run=True)
    assert (len(planned.files), planned.partition_columns, planned.table) == (3, tuple(kinds), None)
    assert planned.empty_folders == (f"file://{gone}",)
    made = imported(catalog, legacy, "t")
    assert rows(made) == [
        {"id": 1, "v": "x", "day": dt.date(2024, 1, 1), "kind": "a/b", "n": 1},
        {"id": 2, "v": "y", "day": dt.date(2024, 1, 2), "kind": "é=1", "n": 2},
        {"id": 3, "v": None, "day": None, "kind": None, "n": None},
    ]
    assert made.table is not None
    assert made.table.scan("kind = 'é=1'").count() == 1
    assert [str(field.transform) for field in made.table.spec().fields] == ["identity"] * 3
    with pytest.raises(TableExists):
        imported(catalog, legacy, "t")


def test_columns_have_the_metastores_types_and_the_files_spelling(catalog: Catalog, legacy: Legacy) -> None:
    kinds = {
        "id": "bigint",
        "small": "tinyint",
        "amount": "decimal(9,2)",
        "name": "varchar(10)",
        "code": "char(3)",
        "tags": "array<map<string,int>>",
        "s": "struct<userid:int,inner:struct<b:timestamp>>",
        "ts": "timestamp",
        "z": "timestamp",
        "late": "double",
    }
    place = legacy.create("t", kinds, parameters={"comment": "old trips"})
    inner = pa.struct([("b", pa.timestamp("us"))])
    schema = pa.schema(
        [
            ("id", pa.int32()),
            ("Small", pa.int8()),
            ("amount", pa.decimal128(7, 2)),
            ("Name", pa.string()),
            ("code", pa.string()),
            ("tags", pa.list_(pa.map_(pa.string(), pa.int32()))),
            ("s", pa.struct([("userId", pa.int32()), ("inner", inner)])),
            ("ts", pa.timestamp("ms")),
            ("z", pa.timestamp("us", "UTC")),
            ("dropped", pa.string()),
        ]
    )
    now = dt.datetime(2024, 1, 1, 10)
    row = {
        "id": 1,
        "Small": 2,
        "amount": Decimal("1.50"),
        "Name": "x",
        "code": "abc",
        "tags": [[("k", 1)]],
        "s": {"userId": 7, "inner": {"b": now}},
        "ts": now,
        "z": now.replace(tzinfo=dt.UTC),
    }
    write(pa.Table.from_pylist([row], schema), place)
    made = imported(catalog, legacy, "t")
    assert rows(made) == [{**row, "late": None}]
    assert made.table is not None
    assert made.table.properties["comment"] == "old trips"
    held = {field.name: (str(field.field_type), field.doc) for field in made.table.schema().fields}
    assert held["amount"] == ("decimal(9,2)", "about amount")
    assert [held[name][0] for name in ("id", "Small", "Name", "ts", "z")] == [
        "long",
        "int",
        "string",
        "timestamp",
        "timestamptz",
    ]


def test_files_that_spell_a_column_in_two_ways_are_read_by_a_name_mapping(catalog: Catalog, legacy: Legacy) -> None:
    place = legacy.create("t", {"id": "bigint", "s": "struct<userid:int>"})
    for i, (name, inner) in enumerate((("ID", "userId"), ("id", "userid"), ("id", "UserID"))):
        struct = pa.array([{inner: i}], pa.struct([(inner, pa.int32())]))
        write(pa.table({name: pa.array([i], pa.int64()), "s": struct}), place, f"{i}.parquet")
    made = imported(catalog, legacy, "t")
    assert rows(made) == [{"id": i, "s": {"userid": i}} for i in range(3)]


def test_partitions_of_two_formats_are_one_table(catalog: Catalog, legacy: Legacy) -> None:
    place = legacy.create("t", {"id": "bigint", "kind": "string"}, partitioned={"p": "int"})
    write(ROWS, place / "p=1")
    (place / "p=2").mkdir()
    orc.write_table(ROWS, place / "p=2" / "000000_0")
    legacy.add("t", (("1",), place / "p=1"))
    legacy.add("t", (("2",), place / "p=2"), file_format="orc")
    made = imported(catalog, legacy, "t")
    assert made.file_format == "orc, parquet"
    assert sorted((row["id"], row["p"]) for row in rows(made)) == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_a_managed_table_is_imported_only_if_that_is_accepted(catalog: Catalog, legacy: Legacy) -> None:
    for name, kind, parameters in (
        ("managed", "MANAGED_TABLE", {}),
        ("purged", "EXTERNAL_TABLE", {"external.table.purge": "true"}),
    ):
        write(ROWS, legacy.create(name, {"id": "bigint", "kind": "string"}, kind=kind, parameters=parameters))
        with pytest.raises(InvalidArgument, match=r"Hive owns its files.*accept_managed=True"):
            imported(catalog, legacy, name)
        assert len(rows(imported(catalog, legacy, name, accept_managed=True))) == 2


def test_files_in_subfolders_are_refused_except_for_those_of_a_union(catalog: Catalog, legacy: Legacy) -> None:
    place = legacy.create("t", {"id": "bigint", "kind": "string"})
    write(ROWS, place / "HIVE_UNION_SUBDIR_1")
    write(ROWS, place / "HIVE_UNION_SUBDIR_2")
    assert len(imported(catalog, legacy, "t", dry_run=True).files) == 2
    write(ROWS, place / "day=2024-01-01")
    with pytest.raises(UnsupportedFeature, match="subfolder 'day=2024-01-01'"):
        imported(catalog, legacy, "t")


def test_two_partitions_of_one_folder_are_refused(catalog: Catalog, legacy: Legacy) -> None:
    place = legacy.create("t", {"id": "bigint", "kind": "string"}, partitioned={"p": "int"})
    write(ROWS, place / "x")
    legacy.add("t", (("1",), place / "x"), (("2",), place / "x"))
    with pytest.raises(InvalidArgument, match=r"twice|same file"):
        imported(catalog, legacy, "t")
    assert not catalog.table_exists("db.t")


@pytest.mark.parametrize(
    ("error", "message", "given"),
    [
        (UnsupportedFeature, "is bucketed by id", {"numBuckets": 4, "bucketCols": ["id"]}),
        (UnsupportedFeature, "is transactional", {"parameters": {"transactional": "true"}, "bucketCols": ["id"]}),
        (InvalidArgument, "a table of Iceberg already", {"parameters": {"table_type": "ICEBERG"}}),
        (InvalidArgument, "use import_delta", {"parameters": {"spark.sql.sources.provider": "delta"}}),
        (UnsupportedFeature, "of Hudi", {"inputFormat": "org.apache.hudi.hadoop.HoodieParquetInputFormat"}),
        (UnsupportedFeature, "stored by org.x.HBase", {"parameters": {"storage_handler": "org.x.HBase"}}),
        (UnsupportedFeature, "only Parquet, ORC and Avro", {"file_format": "text"}),
        (UnsupportedFeature, "by position", {"parameters": {"parquet.column.index.access": "true"}}),
        (UnsupportedFeature, "is a view", {"kind": "VIRTUAL_VIEW"}),
        (UnsupportedFeature, "column 'u'.*uniontype", {"columns": {"u": "uniontype<int,string>"}}),
        (FileMissing, "no data file", {}),
        (FileMissing, "MSCK REPAIR TABLE", {"partitioned": {"p": "int"}}),
    ],
)
def test_a_table_that_is_more_than_its_files_is_refused(
    catalog: Catalog, legacy: Legacy, error: type[IcefieldError], message: str, given: dict[str, Any]
) -> None:
    more = {"columns": {"id": "bigint"}, **given}
    if "transactional" in more.get("parameters", {}):
        more |= {"file_format": "orc", "kind": "MANAGED_TABLE", "numBuckets": 1}
    legacy.create("t", **more)
    with pytest.raises(error, match=message):
        imported(catalog, legacy, "t")


def test_files_that_contradict_the_metastore_are_refused(catalog: Catalog, legacy: Legacy) -> None:
    place = legacy.create("t", {"id": "bigint"}, partitioned={"kind": "string"})
    write(ROWS, place / "kind=a")
    legacy.add("t", (("a",), place / "kind=a"))
    with pytest.raises(UnsupportedFeature, match="holds the column 'kind'"):
        imported(catalog, legacy, "t")
    write(pa.table({"id": [1], "ID": [2]}), legacy.create("twins", {"id": "bigint"}))
    with pytest.raises(InvalidSchema, match="'id' and 'ID'"):
        imported(catalog, legacy, "twins")
    write(pa.table({"id": ["x"]}), legacy.create("other", {"id": "bigint"}))
    with pytest.raises(IcefieldError, match=r"000000_0.*id"):
        imported(catalog, legacy, "other")


def test_the_metastore_of_a_catalog_can_be_the_source(hive: str, legacy: Legacy, tmp_path: Path) -> None:
    write(ROWS, legacy.create("t", {"id": "bigint", "kind": "string"}))
    with icefield.load_catalog("h", type="hive", uri=hive, warehouse=f"file://{tmp_path}/w") as catalog:
        made = import_hive(catalog, "legacy.t_iceberg", "legacy.t", metastore=catalog, types={"kind": "string"})
        assert len(rows(made)) == 2
        with pytest.raises(NoSuchTable):
            import_hive(catalog, "legacy.u", "legacy.missing", metastore=catalog)
        with pytest.raises(InvalidArgument, match=r"database\.table"):
            import_hive(catalog, "legacy.u", "t", metastore=catalog)


def test_the_command_names_a_metastore(legacy: Legacy, tmp_path: Path) -> None:
    place = legacy.create("t", {"id": "bigint", "kind": "string"}, partitioned={"p": "int"}, kind="MANAGED_TABLE")
    write(ROWS, place / "p=1")
    legacy.add("t", (("1",), place / "p=1"), (("2",), place / "p=2"))
    lake = icefield.load_catalog("lake", type="directory", warehouse=f"file://{tmp_path}/lake")
    lake.create_namespace("db")
    (tmp_path / "icefield.toml").write_text(f'[catalog.old]\ntype = "hive"\nuri = "{legacy.uri}"\n')

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        options = ["--catalog", "lake", "-p", "type=directory", "-p", f"warehouse=file://{tmp_path}/lake"]
        command = [Path(sys.executable).with_name("icefield"), "import", "db.t", "legacy.t", *words, *options]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    refused = run("--metastore", "old")
    assert (refused.returncode == 0, "--accept-managed" in refused.stderr) == (False, True)
    assert "--format" in run("--metastore", "old", "--format", "orc").stderr
    planned = run("--metastore", "old", "--accept-managed", "--dry-run")
    assert "p       int     identity" in planned.stdout
    assert "1 partitions have no file" in planned.stderr
    made = run("--metastore", legacy.uri, "--accept-managed")
    assert "imported 1 file of parquet" in made.stdout
    assert lake.load_table("db.t").scan().count() == 2


def test_without_the_client_the_extra_is_named(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icefield_import.hive.find_spec", lambda name: None)
    with pytest.raises(MissingPlugin, match=r'pip install "icefield-import\[hive\]"'):
        import_hive(catalog, "db.t", "legacy.t", metastore="thrift://127.0.0.1:1")


def test_another_catalog_has_no_tables_of_hive(catalog: Catalog) -> None:
    with pytest.raises(InvalidArgument, match="'lake' has no tables of Hive"):
        import_hive(catalog, "db.t", "legacy.t", metastore=catalog)
