"""The settings of a writer of data files: one immutable value that is sent to executors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.metadata import TableMetadata
from icefield.metadata import properties as p
from icefield.metadata.metrics import MetricsConfig
from icefield.partitioning import PartitionSpec
from icefield.schema import Schema
from icefield.schema.row_lineage import with_lineage
from icefield.storage import FileIO, LocationProvider
from icefield.storage.encrypted_files import check_key_length
from icefield.types import DecimalType

BUFFER_BYTES = 512 << 20
"""The maximum bytes of buffered rows; above it the partitions with the most bytes are written out."""


@dataclass(frozen=True, slots=True)
class WriteContext:
    """Where and how data files are written. Immutable; picklable.

    ``schema`` and ``spec`` are the table's schema and spec for new rows. ``file_format`` names an installed format.
    ``operation_id`` sets the files of one operation apart from all others; tasks and attempts have numbers of
    their own. ``sort_order_id`` is recorded in each file: set it only when the rows come in that order.
    ``buffer_bytes`` bounds the rows held in memory, ``workers`` the threads that write files (None: see
    ``FileIO.workers``).
    """

    schema: Schema
    spec: PartitionSpec
    locations: LocationProvider
    io: FileIO
    file_format: str = p.DEFAULT_FORMAT
    properties: Mapping[str, str] = field(default_factory=dict)
    sort_order_id: int | None = None
    operation_id: str = field(default_factory=lambda: str(uuid4()))
    target_file_bytes: int = 512 << 20
    buffer_bytes: int = BUFFER_BYTES
    workers: int | None = None

    def __post_init__(self) -> None:
        unknown = [each for each in self.spec.fields if not each.is_known]
        if unknown:
            raise UnsupportedFeature(
                f"partition field '{unknown[0].name}' has the transform '{unknown[0].transform}', which this version"
                " cannot compute: no rows can be written with this partition spec"
            )
        for each in self.schema.id_to_field.values():
            kind = each.field_type
            if isinstance(kind, DecimalType) and kind.scale > kind.precision:
                raise UnsupportedFeature(
                    f"column '{each.name}' is of type {kind}, of which no file format holds values: no rows can be "
                    "written; delete the column",
                    field_id=each.field_id,
                )
        check_key_length(self.io.key_length)
        if self.target_file_bytes < 1 or self.buffer_bytes < 1:
            raise InvalidArgument("target_file_bytes and buffer_bytes must be positive")

    @classmethod
    def from_metadata(
        cls,
        metadata: TableMetadata,
        io: FileIO,
        *,
        properties: Mapping[str, str] | None = None,
        operation_id: str | None = None,
        **changes: Any,
    ) -> WriteContext:
        """The context for a table: its current schema, default spec and properties.

        ``properties`` go over the table's for this write. Raises ``InvalidArgument`` for a property that cannot be
        used, ``UnsupportedFeature`` for a spec with an unknown transform.
        """
        merged, schema = {**metadata.properties, **(properties or {})}, metadata.schema()
        ordered = schema.field_ids.intersection(metadata.sort_order().ordered_ids)  # they have bounds by default
        modes = MetricsConfig.from_properties(merged, schema, ordered)
        merged |= {f"{p.METRICS_COLUMN.name}{schema.find_column_name(id_)}": str(modes.mode(id_)) for id_ in ordered}
        context = cls(
            schema=schema,
            spec=metadata.spec(),
            locations=LocationProvider.from_metadata(metadata),
            io=io.encrypting(metadata),
            file_format=p.get_str(merged, p.WRITE_FORMAT_DEFAULT).lower(),
            properties=merged,
            operation_id=operation_id or str(uuid4()),
            target_file_bytes=p.get_int(merged, p.WRITE_TARGET_FILE_SIZE),
        )
        return replace(context, **changes) if changes else context

    def with_row_lineage(self) -> WriteContext:
        """The context for rows that were in the table before, with their row lineage columns.

        The rows come with these columns as they were read; the last change is null for a changed row. Only for tables
        of version 3. Raises ``UnsupportedFeature`` for a table that has columns of these names.
        """
        return replace(self, schema=with_lineage(self.schema))
