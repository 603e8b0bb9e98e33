"""Manifests and manifest lists of real tables, read by an Avro library that knows nothing of tables."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from icefield.manifest import read_manifest_list
from icefield.schema import schema_from_json
from peer_tables import table_with_history
from peers import pyiceberg_catalog
from vectors import VECTORS

fastavro = pytest.importorskip("fastavro")

VERSIONS = pytest.mark.parametrize("format_version", [1, 2, 3])
NEVER_WRITTEN = {106, 107, 111, 146}
"""Fields that some version has, but that no writer should write any more, or yet."""


def opened(location: str) -> tuple[dict[str, str], dict[str, Any], list[dict[str, Any]]]:
    """The key-value metadata, the schema and the records of a file."""
    with open(location.removeprefix("file://"), "rb") as source:
        reader = fastavro.reader(source)
        records = list(reader)
        return reader.metadata, json.loads(reader.metadata["avro.schema"]), records


def nodes(schema: Any) -> Iterator[tuple[int, str, bool, Any]]:
    """Every field, element, key and value: its id, its name, whether it is required, and its own schema."""
    if isinstance(schema, list):
        (schema,) = [branch for branch in schema if branch != "null"]
    if not isinstance(schema, dict):
        return
    if schema["type"] == "record":
        for field in schema["fields"]:
            yield field["field-id"], field["name"], not isinstance(field["type"], list), field["type"]
            yield from nodes(field["type"])
    elif schema["type"] == "array" and schema.get("logicalType") == "map":
        yield from nodes(schema["items"])
    elif schema["type"] == "array":
        yield schema["element-id"], "element", not isinstance(schema["items"], list), schema["items"]
        yield from nodes(schema["items"])
    elif schema["type"] == "map":
        yield schema["key-id"], "key", True, "string"
        yield schema["value-id"], "value", not isinstance(schema["values"], list), schema["values"]


def matches_vectors(found: dict[int, tuple[str, bool]], rows: list[dict[str, Any]], format_version: int) -> None:
    """Each field that the version demands is there and required; none is there that it does not have."""
    for row in rows:
        demanded = None if row["id"] in NEVER_WRITTEN else row[f"v{format_version}"]
        if row["id"] not in found:
            assert demanded != "required", row
            continue
        name, required = found[row["id"]]
        assert name in (row["name"], *row.get("old_names", ())), row
        assert demanded is not None, row
        assert required == (demanded == "required"), row


@VERSIONS
@pytest.mark.spec("MAN-01", "MAN-02", "MAN-07", "MAN-36", "MAN-37", "MAN-42", "ML-01", "VER-04", "VER-06", "VER-15")
def test_every_node_of_every_file_has_its_id_and_what_its_version_demands(catalog, format_version):
    table = table_with_history(catalog, "db.h", format_version)
    for snapshot in table.snapshots():
        _, list_schema, manifests = opened(snapshot.manifest_list)
        found = {id_: (name, required) for id_, name, required, _ in nodes(list_schema)}
        matches_vectors(found, VECTORS["manifest_file_fields"], format_version)
        assert len(found) == len(list(nodes(list_schema)))
        for manifest in manifests:
            _, schema, _ = opened(manifest["manifest_path"])
            found = {id_: (name, required) for id_, name, required, _ in nodes(schema)}
            matches_vectors(found, VECTORS["manifest_entry_fields"], format_version)
            matches_vectors(found, VECTORS["data_file_fields"], format_version)
            assert len(found) == len(list(nodes(schema)))
            spec = table.specs()[manifest["partition_spec_id"]]
            (partition,) = [node for id_, _, _, node in nodes(schema) if id_ == 102]
            assert [field["field-id"] for field in partition["fields"]] == [field.field_id for field in spec.fields]
            assert not any(required for _, _, required, _ in nodes(partition))


@VERSIONS
@pytest.mark.spec("MAN-03", "MAN-04", "MAN-05", "MAN-06", "ML-20", "VER-04")
def test_the_headers_state_what_the_version_demands(catalog, format_version):
    table = table_with_history(catalog, "db.h", format_version)
    for snapshot in table.snapshots():
        metadata, _, manifests = opened(snapshot.manifest_list)
        assert metadata["snapshot-id"] == str(snapshot.snapshot_id)
        assert metadata["format-version"] == str(format_version)
        for manifest in manifests:
            metadata, _, _ = opened(manifest["manifest_path"])
            for row in VECTORS["manifest_key_metadata"]:
                demanded = row[f"v{format_version}"]
                assert row["key"] in metadata or demanded != "required", row
                assert row["key"] not in metadata or demanded is not None, row
            schema = schema_from_json(json.loads(metadata["schema"]))
            assert schema in table.schemas().values()
            assert len(json.loads(metadata["partition-spec"])) == len(
                table.specs()[manifest["partition_spec_id"]].fields
            )


@VERSIONS
@pytest.mark.spec("MAN-13", "MAN-14", "MAN-17", "MAN-34", "MAN-35", "ML-04", "ML-07", "ML-10", "ML-11", "SNAP-19")
def test_counts_sizes_and_states_are_those_of_the_files(catalog, format_version):
    table = table_with_history(catalog, "db.h", format_version)
    for snapshot in table.snapshots():
        _, _, manifests = opened(snapshot.manifest_list)
        live = 0
        for manifest in manifests:
            path = Path(manifest["manifest_path"].removeprefix("file://"))
            assert manifest["manifest_length"] == path.stat().st_size
            _, _, entries = opened(manifest["manifest_path"])
            states = [entry["status"] for entry in entries]
            names = ("existing_files_count", "added_files_count", "deleted_files_count")
            assert [states.count(state) for state in range(3)] == [manifest[name] for name in names]
            for state, name in enumerate(("existing_rows_count", "added_rows_count", "deleted_rows_count")):
                rows = sum(entry["data_file"]["record_count"] for entry in entries if entry["status"] == state)
                assert manifest[name] == rows
            live += manifest["existing_rows_count"] + manifest["added_rows_count"]
            for entry in entries:
                file = entry["data_file"]
                assert file["file_size_in_bytes"] == Path(file["file_path"].removeprefix("file://")).stat().st_size
                if format_version > 1:
                    assert (entry["sequence_number"] is None) == (entry["status"] == 1)
        assert snapshot.summary["total-records"] == str(live)


@VERSIONS
@pytest.mark.spec("VER-13", "MAN-21", "MET-01", "MAN-33")
def test_pyiceberg_finds_the_same_entries_and_statistics(catalog, tmp_path, format_version):
    pytest.importorskip("pyiceberg")
    table = table_with_history(catalog, "db.h", format_version)
    ours = {file["file_path"]: file for file in table.inspect.files().to_pylist()}
    with pyiceberg_catalog(tmp_path) as peer:
        theirs = peer.load_table("db.h")
        found = {file["file_path"]: file for file in theirs.inspect.files().to_pylist()}
        manifests = theirs.current_snapshot().manifests(theirs.io)
    assert found.keys() == ours.keys()
    for path, file in found.items():
        for name in ("record_count", "file_size_in_bytes", "spec_id", "split_offsets", "sort_order_id"):
            assert file[name] == ours[path][name], name
        names = ("column_sizes", "value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
        for name in (*names, "nan_value_counts"):
            assert dict(file[name] or ()) == dict(ours[path][name] or ()), name
    mine = read_manifest_list(table.io, table.current_snapshot(), table.metadata).manifests
    assert [m.manifest_path for m in manifests] == [m.manifest_path for m in mine]
