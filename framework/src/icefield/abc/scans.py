"""The contract of a service that plans scans: it lists the files to read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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
    ``statistics``: each file needs its column statistics.
    """

    metadata: TableMetadata = field(repr=False)
    schema: Schema = field(repr=False)
    snapshot_id: int
    columns: tuple[str, ...]
    row_filter: BooleanExpression
    case_sensitive: bool = True
    of_snapshot: bool = False
    limit: int | None = None
    begin: int | None = None
    statistics: bool = False


@dataclass(frozen=True, slots=True)
class ScanListing:
    """A plan of a service: its parts, and the credentials for its files if they differ from the table's.

    A part has data files, each with the delete files that apply to it. Closing ``parts`` early tells the service to
    stop planning. Iterating raises ``InvalidMetadata`` for an invalid file.
    """

    parts: Iterator[Sequence[tuple[DataFile, tuple[DataFile, ...]]]]
    access: tuple[FileAccess, ...] = ()


class ScanService(ABC):
    """Plans the scans of one table. Two services are equal if they plan the scans in the same way."""

    @abstractmethod
    def plan(self, asked: ScanPlanRequest) -> ScanListing:
        """The files that may hold matching rows, with the delete files that apply to each.

        Raises ``StorageError`` if the service does not plan in time, ``NotSupportedByCatalog`` if it cannot plan.
        """
