"""Views that Iceberg's Java library keeps in a JDBC catalog do not appear as tables here, and stay unchanged."""

from pathlib import Path

import pyarrow as pa
import pytest
from icefield import load_catalog
from icefield.errors import NamespaceNotEmpty, NoSuchTable, TableExists
from servers.java_iceberg import JavaIceberg

SCHEMA = pa.schema([("id", pa.int64())])


@pytest.mark.spec("VER-13")
def test_views_of_a_running_jdbc_catalog_are_left_alone(java_iceberg: JavaIceberg, tmp_path: Path) -> None:
    database, warehouse = tmp_path / "catalog.db", tmp_path / "warehouse"
    assert java_iceberg.views(database, warehouse, "db", create=["v", "w"]) == ["v", "w"]
    with load_catalog("test", type="sql", uri=f"sqlite:///{database}", warehouse=f"file://{warehouse}") as catalog:
        table = catalog.create_table("db.t", SCHEMA)
        table.append(pa.table({"id": [1]}))
        assert catalog.list_tables("db") == [("db", "t")]
        assert not catalog.table_exists("db.v")
        for change in (catalog.drop_table, catalog.purge_table, catalog.load_table):
            with pytest.raises(NoSuchTable):
                change("db.v")
        with pytest.raises(NoSuchTable):
            catalog.rename_table("db.v", "db.other")
        for change in (lambda: catalog.create_table("db.v", SCHEMA), lambda: catalog.rename_table("db.t", "db.w")):
            with pytest.raises(TableExists):
                change()
        catalog.drop_table("db.t")
        with pytest.raises(NamespaceNotEmpty):
            catalog.drop_namespace("db")
    assert java_iceberg.views(database, warehouse, "db") == ["v", "w"]
