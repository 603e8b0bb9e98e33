"""The contract of a service that plans scans: it lists the files to read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icefield.abc.access import FileAccess

if TYPE_CHECKING:
    from icefield.expressions import BooleanExpression
    from icefield.manifest import DataFile
    from icefield.metadata import TableMetadata
    from icefield.schema import Schema


@dataclass(frozen=True, slots=True)
class ScanPlanRequest:
    """A request to plan a scan.

    ``metadata`` is the table's; its partition specs give the order of partition values. ``schema`` has the columns of
    the version. ``snapshot_id`` is the version. ``columns`` are the names that are read, nested ones with dots.
    ``row_filter`` is bound. ``of_snapshot``: names refer to the snapshot's schema, not to the table's current schema.
    ``limit``: the maximum number of rows. ``begin``: plan only appends after that snapshot, up to the version.
    ``statistics``: the columns of ``schema`` to list statistics for, with each file.
    """

    metadata: TableMetadata
    schema: Schema
    snapshot_id: int
    columns: tuple[str, ...]
    row_filter: BooleanExpression
    case_sensitive: bool = True
    of_snapshot: bool = False
    limit: int | None = None
    begin: int | None = None
    statistics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """A part of a plan: data files, and for each the delete files that apply to it."""

    files: Sequence[DataFile]
    deletes: Sequence[tuple[DataFile, ...]]


@dataclass(frozen=True, slots=True)
class ScanListing:
    """A plan of a service: its parts, and the credentials for its files if they differ from the table's.

    Closing ``parts`` early tells the service to stop planning. Iterating raises ``InvalidMetadata`` for an invalid
    file.
    """

    parts: Iterator[ListedFiles]
    access: tuple[FileAccess, ...] = ()


class ScanService(ABC):
    """Plans the scans of one table. Two services are equal if they plan the scans in the same way."""

    @abstractmethod
    def plan(self, asked: ScanPlanRequest) -> ScanListing:
        """The files that may hold matching rows, with the delete files that apply to each.

        Raises ``StorageError`` if the service does not plan in time, ``NotSupportedByCatalog`` if it cannot plan.
        """
