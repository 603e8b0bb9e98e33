"""Limits: the sizes of a table's parts are checked before the parts are read, inflated or hashed."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bounded import bounded
from icefield import Plugins, clear_caches, load_catalog, open_table
from icefield.abc import PutMode
from icefield.base.limits import MAX_LOCATION_LENGTH, MAX_METADATA_BYTES, MAX_NAME_LENGTH
from icefield.catalog.config import configuration_file, default_catalog_name
from icefield.errors import InvalidArgument, InvalidFile, InvalidMetadata
from icefield.manifest import DataFile, ManifestWriter, write_manifest_list
from icefield.metadata import TableMetadata, decode_metadata
from icefield.partitioning import UNPARTITIONED
from icefield.storage.file_io import FileIO
from icefield.toolkit import publish_by_create, read_whole
from icefield.toolkit.input_files import read_bounded
from metadata_examples import V2, document
from planned_tables import SCHEMA

LOCATION = "file:///t/v1.metadata.json"


def file_io() -> FileIO:
    return FileIO(Plugins.installed())


def sparse(path: Path, size: int) -> str:
    with path.open("wb") as file:
        file.truncate(size)
    return f"file://{path}"


@pytest.mark.parametrize("size", [MAX_METADATA_BYTES + 1, 2**31, 2**40])
def test_a_metadata_file_that_is_too_large_is_refused_unread(tmp_path: Path, size: int) -> None:
    location = sparse(tmp_path / "v1.metadata.json", size)
    with bounded(seconds=1, megabytes=64):
        with pytest.raises(InvalidMetadata, match=r"v1\.metadata\.json has more than 536,870,912 bytes"):
            open_table(location)
        with pytest.raises(InvalidMetadata, match="more than"):
            read_whole(file_io().file_system(location), location)


@pytest.mark.parametrize("kind", ["directory", "sql"])
def test_a_catalog_refuses_a_version_that_is_too_large_unread(tmp_path: Path, kind: str) -> None:
    more = {"uri": f"sqlite:///{tmp_path}/c.db"} if kind == "sql" else {}
    catalog = load_catalog("c", type=kind, warehouse=f"file://{tmp_path}/w", **more)
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", SCHEMA)
    path = Path(table.metadata_location.removeprefix("file://"))
    os.truncate(path, 2**40)
    with pytest.raises(InvalidMetadata, match="more than"):
        catalog.load_table("n.t")
    with pytest.raises(InvalidMetadata, match="more than"):
        catalog.register_table("n.u", f"file://{path}")


def test_a_name_that_is_taken_by_a_huge_file_is_no_name_that_was_won(tmp_path: Path) -> None:
    location = sparse(tmp_path / "v2.metadata.json", 2**40)
    assert not publish_by_create(file_io().file_system(location), location, b"{}")


class _Endless(io.BytesIO):
    """A file that states a small size, and gives bytes without end."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size, self.given = size, 0

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._size if whence == os.SEEK_END else offset

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        assert size >= 0
        self.given += size
        return bytes(size)


def test_a_file_that_goes_on_beyond_its_size_is_read_no_further_than_the_limit() -> None:
    source = _Endless(100)
    with pytest.raises(InvalidFile, match="more than 5,000 bytes"):
        read_bounded(source, "memory://f", 5_000)
    assert source.given < 20_000


def test_a_file_that_comes_in_small_pieces_is_read_whole() -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(3, size or 3))

    assert read_bounded(Slow(bytes(range(100))), "memory://f", 100) == bytes(range(100))
    with pytest.raises(InvalidFile):
        read_bounded(Slow(bytes(101)), "memory://f", 100)


@pytest.mark.slow
@pytest.mark.parametrize("filling", [b"\0", b" ", b"[", b'{"a":1,'])
def test_a_gzip_bomb_is_given_up_after_a_few_megabytes(filling: bytes) -> None:
    bomb = gzip.compress(filling * (2**28 // len(filling)), 9)
    code = (
        "import sys,time\nfrom icefield.metadata import decode_metadata\nfrom icefield.errors import InvalidMetadata\n"
        "data=sys.stdin.buffer.read()\nstart=time.process_time()\n"
        f"try: decode_metadata(data,{LOCATION!r})\nexcept InvalidMetadata as error: print(error)\n"
        "print(time.process_time()-start)\n"
        "print(next(l for l in open('/proc/self/status') if l.startswith('VmHWM')).split()[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=bomb, capture_output=True, check=True)
    said, seconds, peak = done.stdout.decode().split("\n")[:3]
    assert LOCATION in said
    assert "gzip" in said
    assert float(seconds) < 2
    assert int(peak) < 400 * 1024


def test_metadata_that_is_packed_well_is_read() -> None:
    source = document(V2)
    entry = {"timestamp-ms": 1515100955770, "metadata-file": "s3://bucket/warehouse/db/table/metadata/v1.metadata.json"}
    source["metadata-log"] = [entry] * 200_000
    data = json.dumps(source).encode()
    assert len(data) > 16 * 1024 * 1024
    assert len(decode_metadata(gzip.compress(data, 1), LOCATION).metadata_log) == 200_000


def test_a_configuration_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "icefield.toml"
    sparse(path, 2**40)
    environment = {"ICEFIELD_CONFIG": str(path)}
    assert configuration_file(environment) == path
    with pytest.raises(InvalidArgument, match=r"icefield\.toml has more than 4,194,304 bytes"):
        default_catalog_name(environment)


def long_name() -> str:
    """A long name, made for each test, because a constant would take memory wherever tests are collected."""
    return "x" * (64 * 1024 * 1024)


def with_long(key: str) -> dict[str, Any]:
    source, long = document(V2), long_name()
    snapshot = source["snapshots"][-1]
    match key:
        case "location":
            source["location"] = "s3://b/" + long
        case "manifest-list":
            snapshot["manifest-list"] = "s3://b/" + long
        case "summary":
            snapshot["summary"] = {"operation": "append", long: "1"}
        case "metadata-log":
            source["metadata-log"] = [{"timestamp-ms": 1515100955770, "metadata-file": "s3://b/" + long}]
        case "statistics":
            source["statistics"] = [
                {
                    "snapshot-id": snapshot["snapshot-id"],
                    "statistics-path": "s3://b/" + long,
                    "file-size-in-bytes": 1,
                    "file-footer-size-in-bytes": 1,
                    "blob-metadata": [],
                }
            ]
        case "partition-statistics":
            source["partition-statistics"] = [
                {"snapshot-id": snapshot["snapshot-id"], "statistics-path": "s3://b/" + long, "file-size-in-bytes": 1}
            ]
        case "refs":
            source["refs"] = {long: {"snapshot-id": snapshot["snapshot-id"], "type": "tag"}}
        case "properties":
            source["properties"] = {long: "1"}
        case "schemas":
            for schema in source["schemas"]:
                schema["fields"][0]["name"] = long
        case "type":
            for schema in source["schemas"]:
                schema["fields"][0]["type"] = long
        case "partition-specs":
            source["partition-specs"][0]["fields"][0]["name"] = long
        case "transform":
            source["partition-specs"][0]["fields"][0]["transform"] = long
        case "sort-orders":
            for order in source["sort-orders"]:
                order["fields"] = [{"source-id": 1, "transform": long, "direction": "asc", "null-order": "nulls-last"}]
                order["order-id"] = max(order["order-id"], 1)
            source["default-sort-order-id"] = source["sort-orders"][0]["order-id"]
    return source


def look_at_all(metadata: TableMetadata) -> None:
    """Decode the parts that are otherwise decoded on first use."""
    for array in (metadata.schemas, metadata.snapshots, metadata.statistics, metadata.partition_statistics):
        list(array)
    list(metadata.sort_orders)


@pytest.mark.parametrize(
    "key",
    [
        "location",
        "manifest-list",
        "summary",
        "metadata-log",
        "statistics",
        "partition-statistics",
        "refs",
        "properties",
        "schemas",
        "type",
        "partition-specs",
        "transform",
        "sort-orders",
    ],
)
def test_a_string_of_64_megabytes_in_metadata_is_refused_by_one_error_that_names_file_and_field(key: str) -> None:
    data = json.dumps(with_long(key)).encode()
    start = time.process_time()
    with pytest.raises(InvalidMetadata) as raised:
        look_at_all(decode_metadata(data, LOCATION))
    assert time.process_time() - start < 5
    message = str(raised.value)
    assert LOCATION in message
    assert {
        "type": "schemas",
        "transform": "partition-specs",
        "summary": "snapshots",
        "manifest-list": "snapshots",
    }.get(key, key) in message
    assert len(message) < 1000


def planned(io_: FileIO, folder: Path, path: str, listed: str | None = None) -> str:
    """A table of one data file with that path, in a manifest at ``listed``."""
    manifest = f"file://{folder}/m.avro"
    with ManifestWriter(io_, manifest, UNPARTITIONED, SCHEMA, 2, 1) as writer:
        writer.add([DataFile(file_path=path, file_format="parquet", record_count=1, file_size_in_bytes=1)])
    made = writer.close()
    if listed is not None:
        made = replace(made, manifest_path=listed)
    write_manifest_list(
        io_,
        f"file://{folder}/l.avro",
        [made],
        format_version=2,
        snapshot_id=1,
        parent_snapshot_id=None,
        sequence_number=1,
    )
    return f"file://{folder}/l.avro"


@pytest.mark.slow
@pytest.mark.parametrize("field", ["file_path", "manifest_path"])
def test_a_path_of_64_megabytes_in_a_manifest_or_a_list_is_refused_at_once(tmp_path: Path, field: str) -> None:
    io_ = file_io()
    sound = f"file://{tmp_path}/d.parquet"
    if field == "file_path":
        listed = planned(io_, tmp_path, f"file://{tmp_path}/{long_name()}")
    else:
        listed = planned(io_, tmp_path, sound, f"file://{tmp_path}/{long_name()}")
    source = document(V2)
    source["snapshots"][-1]["manifest-list"] = listed
    location = f"file://{tmp_path}/v1.metadata.json"
    io_.put(location, json.dumps(source).encode(), PutMode.CREATE)
    clear_caches()
    table = open_table(location)
    start = time.process_time()
    for work in (table.scan().count, lambda: list(table.scan().plan_files()), table.inspect.files):
        with pytest.raises(InvalidMetadata, match=rf"avro: {field} has 67,1\d\d,\d\d\d bytes") as raised:
            work()
        assert len(str(raised.value)) < 1000
    assert time.process_time() - start < 10


def test_the_longest_names_and_locations_are_read() -> None:
    source = document(V2)
    source["location"] = "s3://b/" + "x" * (MAX_LOCATION_LENGTH - 7)
    source["properties"] = {"x" * MAX_NAME_LENGTH: "1"}
    assert len(decode_metadata(json.dumps(source).encode(), LOCATION).location) == MAX_LOCATION_LENGTH
