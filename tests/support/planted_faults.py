"""Tables with one fault each, planted into the files of a sound table, to test checks for such faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import icefield
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from icefield.catalog import Table
from icefield.partitioning import SortField, SortOrder
from icefield.schema import Schema
from icefield.types import DoubleType, LongType, NestedField, StringType

Record = dict[str, Any]
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "kind", StringType()),
    NestedField(3, "value", DoubleType()),
)


@dataclass
class Planted:
    """A table on a local disk, with methods that change any of its files behind its back."""

    table: Table

    @classmethod
    def sound(cls, folder: Path, format_version: int = 2, **properties: str) -> Planted:
        """A table in two partitions with three commits: two appends, and a delete of one row by position or vector."""
        catalog = icefield.load_catalog("planted", type="directory", warehouse=f"file://{folder}")
        catalog.create_namespace("db")
        table = catalog.create_table(
            "db.t",
            SCHEMA,
            sort_order=SortOrder(SortField(source_id=1)),
            properties={
                "format-version": str(format_version),
                "write.delete.mode": "merge-on-read" if format_version > 1 else "copy-on-write",
                **properties,
            },
        )
        with table.update_spec() as update:
            update.add_identity("kind")
        for start in (0, 10):
            ids = np.arange(start, start + 10)
            kinds = ["a" if number % 2 else "b" for number in ids.tolist()]
            table.append(pa.table({"id": pa.array(ids), "kind": kinds, "value": ids * 0.5}, schema=_ARROW))
        table.delete("id = 3")
        return cls(table)

    def again(self) -> Table:
        """The table as another process opens it."""
        return icefield.open_table(self.table.metadata_location)

    def loaded(self) -> Table:
        """The table as another process loads it to change it."""
        warehouse = self.table.metadata_location.removesuffix("/").split("/db/")[0]
        return icefield.load_catalog("planted", type="directory", warehouse=warehouse).load_table("db.t")

    @property
    def metadata(self) -> Path:
        """The metadata file."""
        return _path(self.table.metadata_location)

    @property
    def manifest_list(self) -> Path:
        """The manifest list of the current snapshot."""
        snapshot = self.table.current_snapshot()
        assert snapshot is not None
        assert snapshot.manifest_list is not None
        return _path(snapshot.manifest_list)

    def manifest(self, content: int = 0) -> Path:
        """The first manifest of a content: 0 data, 1 deletes."""
        return next(_path(each["manifest_path"]) for each in _read(self.manifest_list)[1] if each["content"] == content)

    def data_file(self) -> Path:
        """The first live data file."""
        return _path(self.table.inspect.data_files()["file_path"][0].as_py())

    def delete_file(self) -> Path:
        """The first live delete file."""
        return _path(self.table.inspect.delete_files()["file_path"][0].as_py())

    def edit_delete_file(self, edit: Callable[[pa.Table], pa.Table]) -> None:
        """Change the rows of the delete file, and give its entry the new size and count."""
        path = self.delete_file()
        rows = edit(pq.read_table(path))
        pq.write_table(rows, path)
        stated = {"file_size_in_bytes": path.stat().st_size, "record_count": rows.num_rows}
        self.edit_files(lambda record: record.update(stated), content=1)

    def edit_metadata(self, edit: Callable[[dict[str, Any]], Any]) -> None:
        """Change the metadata file's JSON."""
        document = json.loads(self.metadata.read_text())
        edit(document)
        self.metadata.write_text(json.dumps(document))

    def edit_list(self, edit: Callable[[list[Record]], Any]) -> None:
        """Change the records of the manifest list."""
        _edit(self.manifest_list, edit)

    def edit_manifest(self, edit: Callable[[list[Record]], Any], content: int = 0) -> None:
        """Change the entries of a manifest, and give the list its new length."""
        manifest = self.manifest(content)
        _edit(manifest, edit)

        def with_length(records: list[Record]) -> None:
            for record in records:
                if _path(record["manifest_path"]) == manifest:
                    record["manifest_length"] = manifest.stat().st_size

        self.edit_list(with_length)

    def edit_files(self, edit: Callable[[Record], Any], content: int = 0) -> None:
        """Change the ``data_file`` of each entry of a manifest."""

        def each(records: list[Record]) -> None:
            for record in records:
                edit(record["data_file"])

        self.edit_manifest(each, content)


_ARROW = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("kind", pa.string()), pa.field("value", pa.float64())]
)


def _path(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def _read(path: Path) -> tuple[Any, list[Record], dict[str, str]]:
    with path.open("rb") as source:
        reader = fastavro.reader(source)
        records: list[Record] = [record for record in reader if isinstance(record, dict)]
        assert reader.writer_schema is not None
        return reader.writer_schema, records, dict(reader.metadata)


def _edit(path: Path, edit: Callable[[list[Record]], Any]) -> None:
    schema, records, metadata = _read(path)
    edit(records)
    kept = {name: value for name, value in metadata.items() if not name.startswith("avro.")}
    with path.open("wb") as target:
        fastavro.writer(target, fastavro.parse_schema(schema), records, metadata=kept)
