"""Tables of Delta Lake, which the library deltalake writes, as new tables."""

from __future__ import annotations

import base64
import datetime as dt
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield import Catalog
from icefield.errors import FileMissing, IcefieldError, InvalidArgument, MissingPlugin, TableExists, UnsupportedFeature
from icefield_import import import_delta, import_folder

deltalake = pytest.importorskip("deltalake")

SCHEMA = pa.schema([("id", pa.int64()), ("kind", pa.string()), ("day", pa.date32()), ("ts", pa.timestamp("us", "UTC"))])
ROWS = [
    {"id": 1, "kind": "a b", "day": dt.date(2024, 1, 1), "ts": dt.datetime(2024, 1, 1, tzinfo=dt.UTC)},
    {"id": 2, "kind": "x/y=%25", "day": dt.date(2024, 1, 1), "ts": None},
    {"id": 3, "kind": None, "day": None, "ts": None},
]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    found = icefield.load_catalog("deltas", type="directory", warehouse=f"file://{tmp_path}/warehouse")
    found.create_namespace("db")
    return found


@pytest.fixture
def delta(tmp_path: Path) -> str:
    place = f"{tmp_path}/delta"
    deltalake.write_deltalake(place, pa.Table.from_pylist(ROWS, SCHEMA), partition_by=["kind", "day"])
    return place


def rows(table: icefield.Table | None) -> list[dict[str, Any]]:
    assert table is not None
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def test_the_live_files_are_added_with_the_values_of_the_log(catalog: Catalog, delta: str) -> None:
    planned = import_delta(catalog, "db.t", delta, dry_run=True)
    assert (len(planned.files), planned.partition_columns, planned.table) == (3, ("kind", "day"), None)
    made = import_delta(catalog, "db.t", delta)
    assert made.table is not None
    assert rows(made.table) == ROWS
    assert [field.name for field in made.table.spec().fields] == ["kind", "day"]
    assert {task.file.file_path for task in made.table.scan().plan_files()} == {f.location for f in planned.files}
    assert made.table.scan("kind = 'x/y=%25'").count() == 1
    with pytest.raises(TableExists):
        import_delta(catalog, "db.t", delta)


def test_rewritten_rows_checkpoints_and_versions_are_followed(catalog: Catalog, delta: str) -> None:
    opened = deltalake.DeltaTable(delta)
    more = pa.table({**{name: pa.array([None], SCHEMA.field(name).type) for name in SCHEMA.names}, "id": [9],
                     "added": ["x"]}, schema=SCHEMA.append(pa.field("added", pa.string())))  # fmt: skip
    deltalake.write_deltalake(delta, more, mode="append", schema_mode="merge")
    opened = deltalake.DeltaTable(delta)
    opened.update(predicate="id = 2", updates={"id": "20"})
    opened.delete("id = 1")
    opened.create_checkpoint()
    deltalake.DeltaTable(delta).optimize.compact()
    made = import_delta(catalog, "db.t", f"file://{delta}")
    theirs = deltalake.DeltaTable(delta).to_pyarrow_table().to_pylist()
    assert rows(made.table) == sorted(theirs, key=lambda row: row["id"])
    assert [row["id"] for row in theirs if row["added"]] == [9]
    assert rows(import_delta(catalog, "db.old", delta, version=0).table) == ROWS


def test_an_empty_delta_table_becomes_an_empty_table(catalog: Catalog, tmp_path: Path) -> None:
    deltalake.DeltaTable.create(f"{tmp_path}/empty", SCHEMA, partition_by=["day"])
    assert rows(import_delta(catalog, "db.t", f"{tmp_path}/empty").table) == []


def changed_log(delta: str, change: Callable[[dict[str, Any]], None]) -> None:
    log = Path(delta, "_delta_log/00000000000000000000.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for each in actions:
        change(each)
    log.write_text("\n".join(map(json.dumps, actions)))


def first_row_deleted() -> dict[str, Any]:
    """A deletion vector of position 0, inline: Delta's magic number, and a bitmap of one container."""
    bitmap = struct.pack("<IIHHIH", 12346, 1, 0, 0, 16, 0)
    data = struct.pack("<iqI", 1_681_511_377, 1, 0) + bitmap
    digits = z85(data + bytes(-len(data) % 4))
    return {"storageType": "i", "pathOrInlineDv": digits, "sizeInBytes": len(data), "cardinality": 1}


def z85(data: bytes) -> str:
    """Bytes in the encoding Z85, whose digits are other characters than those of ``base64.b85encode``."""
    ours = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
    theirs = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    return base64.b85encode(data).decode().translate(str.maketrans(ours, theirs))


def features(*names: str) -> Callable[[dict[str, Any]], None]:
    def change(action: dict[str, Any]) -> None:
        if "protocol" in action:
            action["protocol"] = {
                "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": names, "writerFeatures": names
            }  # fmt: skip
        if "add" in action and "deletionVectors" in names:
            action["add"]["deletionVector"] = first_row_deleted()
        if "metaData" in action and "columnMapping" in names:
            action["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}
            schema = json.loads(action["metaData"]["schemaString"])
            for number, field in enumerate(schema["fields"], 1):
                field["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c{number}"}
            action["metaData"]["schemaString"] = json.dumps(schema)

    return change


@pytest.mark.parametrize(
    ("name", "match"),
    [("deletionVectors", "has deletion vectors"), ("columnMapping", "has the feature columnMapping")],
)
def test_features_that_files_do_not_show_are_refused_by_name(
    catalog: Catalog, tmp_path: Path, name: str, match: str
) -> None:
    place = f"{tmp_path}/plain"
    deltalake.write_deltalake(place, pa.Table.from_pylist(ROWS, SCHEMA))
    changed_log(place, features(name))
    with pytest.raises(UnsupportedFeature, match=match):
        import_delta(catalog, "db.t", place)
    assert not catalog.table_exists("db.t")


def test_a_feature_that_the_library_does_not_know_is_refused(catalog: Catalog, delta: str) -> None:
    changed_log(delta, features("someFeature"))
    with pytest.raises(IcefieldError, match="someFeature"):
        import_delta(catalog, "db.t", delta)


def test_a_folder_without_a_log_and_a_delta_table_as_a_folder_are_refused(
    catalog: Catalog, delta: str, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(FileMissing, match="no table of Delta Lake"):
        import_delta(catalog, "db.t", f"{tmp_path}/plain")
    with pytest.raises(InvalidArgument, match="use import_delta"):
        import_folder(catalog, "db.t", delta)


def test_without_the_library_the_error_says_what_to_install(
    catalog: Catalog, delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icefield_import.delta_import.find_spec", lambda name: None)
    with pytest.raises(MissingPlugin, match=r'pip install "icefield-import\[delta\]"'):
        import_delta(catalog, "db.t", delta)
