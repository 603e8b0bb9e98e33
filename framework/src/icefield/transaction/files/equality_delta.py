"""Adds equality deletes to a table that has data files of several partition specs.

Spec: "Scan Planning". An equality delete applies to data files of its own spec and partition, or to all data files if
its spec has no partitions. The head may have files of other specs, because the table's spec was changed or another
commit moved files meanwhile. Then the deletes are written under these specs, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from icefield.abc import ReadRequest
from icefield.errors import InvalidArgument
from icefield.manifest import DataFile, DataFileContent
from icefield.metadata.table_metadata import schema_of_spec
from icefield.scan.columns.projection import ColumnProjection
from icefield.scan.opening import deleted_rows, open_file
from icefield.schema import Schema
from icefield.transaction.action import ActionContext
from icefield.transaction.files.row_delta import RowDelta
from icefield.transaction.head.branch_head import Head
from icefield.transaction.snapshots.snapshot_producer import FileChanges
from icefield.writing.deletes import DeleteContext, write_equality_deletes
from icefield.writing.deletes.equality_files import partition_sources


class EqualityDelta(RowDelta):
    """A row delta with equality deletes for the data files of every spec of the head."""

    def _prepare(self) -> None:
        super()._prepare()
        self._of_other_specs: dict[int, list[DataFile]] = {}

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """Add deletes for other specs to the row delta. Raises ``InvalidArgument`` where these lack a column."""
        changes = super().find(head, context)
        own = [file for file in changes.added if file.content is DataFileContent.EQUALITY_DELETES]
        covered = {file.spec_id for file in own}
        if not own or any(head.spec(spec_id).is_unpartitioned for spec_id in covered):
            return changes
        for spec_id in sorted({manifest.partition_spec_id for _, manifest in head.live()} - covered):
            if spec_id not in self._of_other_specs:
                # Files written for one base serve the next one: at worst they delete rows that are gone already.
                self._of_other_specs[spec_id] = _under_spec(spec_id, own, head, context)
        more = [file for files in self._of_other_specs.values() for file in files]
        return replace(changes, added=[*changes.added, *more])


def _under_spec(spec_id: int, files: list[DataFile], head: Head, context: ActionContext) -> list[DataFile]:
    """Write the deletes of equality delete files again under another spec."""
    deletes = replace(DeleteContext.from_metadata(head.metadata, context.io), spec_id=spec_id)
    ids = files[0].equality_ids or ()
    needed = partition_sources(head.spec(spec_id))
    for file in files:
        held = deletes.schema.field_ids & {*ids, *partition_sources(head.spec(file.spec_id))}
        if lacking := needed - held:
            column = schema_of_spec(head.metadata, head.spec(spec_id)).find_column_name(min(lacking))
            raise InvalidArgument(
                f"the table has data files that are partitioned by '{column}', under its spec {spec_id}, which is none "
                "of the columns by which rows are deleted: an equality delete applies to one partition. Delete by that "
                "column as well, or by a filter, or bring the files under one spec by "
                "rewrite_data_files(rewrite_all=True)",
                column=column,
            )
    wanted = deletes.schema.select_ids({*ids, *needed})
    return write_equality_deletes(deletes, ids, _rows(files, wanted, context), note=context.written.add)


def _rows(files: list[DataFile], wanted: Schema, context: ActionContext) -> Iterator[pa.RecordBatch]:
    for file in files:
        with open_file(context.io, file) as reader:
            projection = ColumnProjection.resolve(wanted, reader.schema, location=file.file_path)
            for batch in deleted_rows(context.io, file, reader, ReadRequest(projection.file_columns)):
                yield projection.apply(batch)
