"""The examination of a catalog in a Hive Metastore: all is well there, and what is wrong is stated."""

from __future__ import annotations

from pathlib import Path

from icefield import load_catalog
from icefield_maintenance.doctor import Result, examine
from servers.hive import drop_databases


def test_a_metastore_is_well_and_left_as_it_was(hive: str, tmp_path: Path) -> None:
    drop_databases(hive)
    properties = {"type": "hive", "uri": hive, "warehouse": f"file://{tmp_path}/warehouse", "ugi": "ann:staff"}
    found = {each.check: each for each in examine("test", **properties) if not each.check.startswith("plugin ")}
    assert {finding.result for finding in found.values()} == {Result.OK}, found
    assert "user 'ann' by ugi" in found["connection"].found
    assert found["create a table"].found == "by HiveStrategy"
    assert found["commits at once"].found == "one of 4 won"
    with load_catalog("test", **properties) as catalog:
        assert catalog.list_namespaces() == [("default",)]
    assert not [path for path in (tmp_path / "warehouse").rglob("*") if path.is_file()]


def test_a_metastore_that_is_not_there_is_reported(tmp_path: Path) -> None:
    properties = {"type": "hive", "uri": "thrift://127.0.0.1:1", "warehouse": f"file://{tmp_path}/warehouse"}
    found = [each for each in examine("test", **properties) if each.result is Result.FAILED]
    assert found
    assert "127.0.0.1:1" in found[0].found
