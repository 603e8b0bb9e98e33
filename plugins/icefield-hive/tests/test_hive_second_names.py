"""A table of a Hive Metastore that has a second name in another database."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from icefield import load_catalog
from icefield.errors import InvalidArgument, LocationWarning

SCHEMA = pa.schema([("n", pa.int64())])
FREES = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}


def test_a_second_name_in_another_database_keeps_its_files(hive: str, tmp_path: Path) -> None:
    with load_catalog("test", type="hive", uri=hive, warehouse=f"file://{tmp_path}/warehouse") as catalog:
        for each in ("first_names", "second_names"):
            catalog.create_namespace(each)
        table = catalog.create_table("first_names.t", SCHEMA, properties=FREES)
        table.append(pa.table({"n": [1]}, schema=SCHEMA))
        with pytest.warns(LocationWarning, match=r"first_names\.t.*registered twice"):
            catalog.register_table("second_names.t", table.metadata_location)
        for value in (2, 3, 4):
            table.append(pa.table({"n": [value]}, schema=SCHEMA))
        with pytest.raises(InvalidArgument, match=r"second_names\.t may need"):
            table.maintenance.expire_snapshots(2**60, retain_last=1)
        assert catalog.load_table("second_names.t").scan().to_arrow()["n"].to_pylist() == [1]
        catalog.drop_table("second_names.t")
        assert len(table.maintenance.expire_snapshots(2**60, retain_last=1).snapshot_ids) == 3
