"""The settings of a writer of delete files, and the rows to delete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

import numpy as np

from icefield.errors import InvalidArgument
from icefield.manifest import DataFile, DataFileContent
from icefield.metadata import TableMetadata
from icefield.metadata.properties import (
    DEFAULT_FORMAT,
    DELETE_FORMAT_DEFAULT,
    DELETE_GRANULARITY,
    DELETE_TARGET_FILE_SIZE,
    METRICS_COLUMN,
    METRICS_DEFAULT,
    WRITE_FORMAT_DEFAULT,
    find_value,
    get_int,
    get_str,
)
from icefield.metadata.table_metadata import schema_of_spec
from icefield.partitioning import UNPARTITIONED, PartitionSpec
from icefield.puffin.roaring import Positions
from icefield.schema import Schema
from icefield.storage import FileIO, LocationProvider
from icefield.types.values import distinct
from icefield.writing.context import WriteContext


@dataclass(frozen=True, slots=True, eq=False)
class DeletedRows:
    """The deleted rows of one data file.

    ``file`` states the path, the spec and the partition. ``positions`` is an array of int64, ascending and distinct.
    """

    file: DataFile
    positions: Positions


@dataclass(frozen=True, slots=True)
class DeleteContext:
    """Where and how delete files are written. Immutable; picklable.

    ``specs`` holds the table's specs by id, ``schema`` is its current schema. ``older_schemas`` holds, by spec id, a
    schema with the columns of the spec where the current schema lacks some. ``file_format`` names an installed format,
    and ``by_file`` says whether a position delete file covers one data file or a whole partition.
    """

    io: FileIO
    locations: LocationProvider
    specs: Mapping[int, PartitionSpec]
    spec_id: int
    schema: Schema
    format_version: int
    file_format: str = DEFAULT_FORMAT
    properties: Mapping[str, str] = field(default_factory=dict)
    operation_id: str = field(default_factory=lambda: str(uuid4()))
    target_file_bytes: int = 64 << 20
    by_file: bool = False
    older_schemas: Mapping[int, Schema] = field(default_factory=dict)

    @classmethod
    def from_metadata(
        cls,
        metadata: TableMetadata,
        io: FileIO,
        *,
        properties: Mapping[str, str] | None = None,
        operation_id: str | None = None,
    ) -> DeleteContext:
        """The context for a table.

        ``properties`` go over the table's for this write. Raises ``InvalidArgument`` for a property that cannot be
        used.
        """
        merged = {**metadata.properties, **(properties or {})}
        file_format = find_value(merged, DELETE_FORMAT_DEFAULT) or get_str(merged, WRITE_FORMAT_DEFAULT)
        current = metadata.schema()
        return cls(
            io=io.encrypting(metadata),
            locations=LocationProvider.from_metadata(metadata),
            specs={spec.spec_id: spec for spec in metadata.partition_specs},
            spec_id=metadata.default_spec_id,
            schema=current,
            format_version=metadata.format_version,
            file_format=file_format.lower(),
            properties=merged,
            operation_id=operation_id or str(uuid4()),
            target_file_bytes=get_int(merged, DELETE_TARGET_FILE_SIZE),
            by_file=get_str(merged, DELETE_GRANULARITY).lower() == "file",
            older_schemas={
                spec.spec_id: older
                for spec in metadata.partition_specs
                if (older := schema_of_spec(metadata, spec)) is not current
            },
        )

    def folder_of(self, spec_id: int, partition: tuple[object, ...]) -> str:
        """The folder path of a partition. Raises ``InvalidArgument`` for a spec that the table does not have."""
        spec = self.specs.get(spec_id)
        if spec is None:
            raise InvalidArgument(f"the table has no partition spec {spec_id}; it has {sorted(self.specs)}")
        return spec.partition_path(self.older_schemas.get(spec_id, self.schema), partition) if spec.fields else ""

    def writing(self, schema: Schema, *, spec: PartitionSpec = UNPARTITIONED, exact: bool = False) -> WriteContext:
        """The context for files of ``schema``: ``write.delete.<format>.*`` overrides the properties of data files.

        ``exact`` asks for all metrics, with bounds that are not truncated.
        """
        given = self.properties
        own, data = f"write.delete.{self.file_format}.", f"write.{self.file_format}."
        properties = {
            **given,
            **{f"{data}{name[len(own) :]}": value for name, value in given.items() if name.startswith(own)},
        }
        if exact:
            named = METRICS_COLUMN.name
            properties = {name: value for name, value in properties.items() if not name.startswith(named)}
            properties[METRICS_DEFAULT.name] = "full"
        return WriteContext(
            schema=schema,
            spec=spec,
            locations=self.locations,
            io=self.io,
            file_format=self.file_format,
            properties=properties,
            operation_id=self.operation_id,
            target_file_bytes=self.target_file_bytes,
        )


def by_path(rows: Iterable[DeletedRows]) -> dict[str, DeletedRows]:
    """The rows of each data file, by its path: repeated files are merged, files without rows left out.

    Raises ``InvalidArgument`` for positions that are not ascending and distinct, or that the file does not have.
    """
    found: dict[str, DeletedRows] = {}
    for each in rows:
        file, positions = each.file, each.positions
        path = file.file_path
        if file.content is not DataFileContent.DATA:
            raise InvalidArgument(f"{path} is no data file, so that it has no rows to delete")
        if not isinstance(positions, np.ndarray) or positions.dtype != np.int64 or positions.ndim != 1:
            raise InvalidArgument(f"positions in {path} are given as a numpy array of int64 of one dimension")
        if not len(positions):
            continue
        if not np.all(positions[1:] > positions[:-1]):
            raise InvalidArgument(f"positions in {path} must be ascending and distinct; numpy.unique makes them so")
        first, last = int(positions[0]), int(positions[-1])
        if first < 0 or 0 <= file.record_count <= last:
            beyond = first if first < 0 else last
            raise InvalidArgument(f"{path} has {file.record_count} rows, and none at {beyond}")
        found[path] = DeletedRows(file, distinct(found[path].positions, positions)) if path in found else each
    return found
