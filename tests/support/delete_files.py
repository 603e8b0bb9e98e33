"""Delete files as other engines write them: position deletes, deletion vectors and equality deletes, of any format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from icefield.catalog import Table
from icefield.engine import FileChanges, SnapshotProducer
from icefield.manifest import DataFile, DataFileContent
from icefield.metadata.snapshots import Operation
from icefield.puffin import BlobType, PuffinWriter, encode_vectors
from icefield.schema import Schema, schema_to_arrow
from icefield.types.reserved import DELETE_FILE_PATH, DELETE_FILE_POS, POS

POSITION_DELETES = Schema(DELETE_FILE_PATH, DELETE_FILE_POS)


def commit(table: Table, *files: DataFile, removed: Sequence[DataFile] = ()) -> None:
    """Add data files and delete files in one commit, as another engine would."""

    class RowDelta(SnapshotProducer):
        def find(self, head: Any, context: Any) -> FileChanges:
            return FileChanges(list(files))

        def operation(self, changes: FileChanges) -> Operation:
            return Operation.OVERWRITE

    RowDelta(table.stage).commit()


def data_files(table: Table, row_filter: str = "true") -> list[DataFile]:
    """The data files of a table, oldest first."""
    tasks = sorted(table.scan(row_filter).plan_files(), key=lambda task: task.data_sequence_number or 0)
    return [task.file for task in tasks]


def write_file(table: Table, schema: Schema, rows: pa.Table, file_format: str, **given: Any) -> DataFile:
    """A file of that format under the table's folder, described as a manifest does."""
    location = f"{table.location()}/data/{uuid4().hex}.{file_format}"
    with table.io.file_format(file_format).open_writer(table.io.open_output(location), schema) as writer:
        for batch in rows.cast(schema_to_arrow(schema)).to_batches():
            writer.write(batch)
        written = writer.close()
    return DataFile(
        file_path=location,
        file_format=file_format,
        file_size_in_bytes=written.size,
        **{"record_count": rows.num_rows, "split_offsets": tuple(written.split_offsets or ()) or None, **given},
    )


def position_deletes(
    table: Table,
    positions: Iterable[tuple[str, int]],
    file_format: str = "parquet",
    like: DataFile | None = None,
    **given: Any,
) -> DataFile:
    """A position delete file of pairs of path and position, in the partition of a data file."""
    pairs = list(positions)
    paths = pa.array([path for path, _ in pairs], pa.string())
    rows = pa.table({"file_path": paths, "pos": pa.array([position for _, position in pairs], pa.int64())})
    given = {"content": DataFileContent.POSITION_DELETES, **placed(like), **given}
    return write_file(table, POSITION_DELETES, rows, file_format, **given)


def deletion_vectors(table: Table, positions: Mapping[DataFile, Iterable[int]], **given: Any) -> list[DataFile]:
    """Deletion vectors of some data files in one Puffin file."""
    location = f"{table.location()}/data/{uuid4().hex}.puffin"
    found = []
    with PuffinWriter(table.io.open_output(location), {"created-by": "a test"}) as writer:
        for file, deleted in positions.items():
            array = np.unique(np.fromiter(deleted, np.int64))
            properties = {"referenced-data-file": file.file_path, "cardinality": str(len(array))}
            blob = writer.add(
                BlobType.DELETION_VECTOR, encode_vectors([array])[0], fields=[POS.field_id], properties=properties
            )
            found.append((file, len(array), blob))
        size = writer.close()
    return [
        DataFile(
            **{
                "file_path": location,
                "file_format": "puffin",
                "content": DataFileContent.POSITION_DELETES,
                "record_count": count,
                "file_size_in_bytes": size,
                "referenced_data_file": file.file_path,
                "content_offset": blob.offset,
                "content_size_in_bytes": blob.length,
                **placed(file),
                **given,
            }
        )
        for file, count, blob in found
    ]


def equality_deletes(
    table: Table,
    names: Sequence[str],
    rows: Any,
    file_format: str = "parquet",
    like: DataFile | None = None,
    **given: Any,
) -> DataFile:
    """An equality delete file of rows over some columns of the table, named by full names."""
    schema = table.schema().select(*names)
    columns = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows, schema_to_arrow(schema))
    ids = tuple(table.schema().find_field(name).field_id for name in names)
    given = {"content": DataFileContent.EQUALITY_DELETES, "equality_ids": ids, **placed(like), **given}
    return write_file(table, schema, columns, file_format, **given)


def placed(like: DataFile | None) -> dict[str, Any]:
    """The partition of a data file; without a data file, the partition of an unpartitioned table."""
    return {} if like is None else {"partition": like.partition, "spec_id": like.spec_id}
