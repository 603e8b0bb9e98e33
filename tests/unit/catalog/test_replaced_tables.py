"""A table that is replaced: other columns and no rows, under its old name and with its history."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from catalogs import open_catalog
from icefield.errors import InvalidArgument, NoSuchTable, ValidationFailed
from icefield.types import parse_type

OLD = pa.schema(
    [("id", pa.int64()), ("home", pa.struct([("city", pa.string()), ("zip", pa.int32())])), ("n", pa.int32())]
)
NEW = pa.schema(
    [("late", pa.string()), ("home", pa.struct([("zip", pa.int32()), ("way", pa.string())])), ("id", pa.int64())]
)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_replaced_table_keeps_its_history_and_the_ids_of_its_names(tmp_path: Path, version: int) -> None:
    with open_catalog("sql", tmp_path) as catalog:
        catalog.create_namespace("db")
        properties = {"format-version": str(version), "a": "1", "b": "1"}
        table = catalog.create_table("db.t", OLD, partition_spec=["n", ("id", "bucket[4]")], properties=properties)
        table.append(pa.table({"id": [1], "home": [{"city": "Oslo", "zip": 7}], "n": [3]}, schema=OLD))
        first, uuid = table.current_snapshot(), table.metadata.table_uuid
        assert first is not None
        table.manage_snapshots().create_tag(first.snapshot_id, "old").commit()
        partitioned = [("id", "bucket[4]"), "late"]
        with catalog.replace_table_transaction(
            "db.t", NEW, partition_spec=partitioned, properties={"b": "2"}
        ) as transaction:
            transaction.append(pa.table({"late": ["x"], "home": [{"zip": 8, "way": "w"}], "id": [2]}, schema=NEW))
        table = catalog.load_table("db.t")
        assert table.metadata.table_uuid == uuid
        assert table.scan().to_arrow().to_pylist() == [{"late": "x", "home": {"zip": 8, "way": "w"}, "id": 2}]
        ids = {
            name: table.schema().find_field(name).field_id for name in ("late", "home", "home.zip", "home.way", "id")
        }
        assert ids == {"late": 6, "home": 2, "home.zip": 5, "home.way": 7, "id": 1}
        live = [field for field in table.spec().fields if str(field.transform) != "void"]
        assert [(field.name, field.field_id) for field in live] == [("id_bucket_4", 1001), ("late", 1002)]
        assert (table.properties["a"], table.properties["b"]) == ("1", "2")
        now = table.current_snapshot()
        assert now is not None
        assert (now.parent_snapshot_id, len(table.snapshots()), len(table.history())) == (None, 2, 2)
        before = table.scan(ref="old").to_arrow().to_pylist()
        assert before == [{"id": 1, "home": {"city": "Oslo", "zip": 7}, "n": 3}]


def test_a_replacement_does_not_meet_other_columns_than_it_was_made_for(tmp_path: Path) -> None:
    with open_catalog("sql", tmp_path) as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", OLD)
        transaction = catalog.replace_table_transaction("db.t", NEW)
        transaction.append(pa.table({"late": ["x"]}))
        with table.update_schema() as update:
            update.add_column("other", parse_type("int"))
        with pytest.raises(ValidationFailed):
            transaction.commit_transaction()
        assert [field.name for field in catalog.load_table("db.t").schema().fields] == ["id", "home", "n", "other"]
        with pytest.raises(InvalidArgument, match="lower"):
            catalog.replace_table_transaction("db.t", NEW, properties={"format-version": "1"})
        with pytest.raises(NoSuchTable):
            catalog.replace_table_transaction("db.nothing", NEW)
