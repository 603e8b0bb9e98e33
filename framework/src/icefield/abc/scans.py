"""The contract of a service that plans scans: it lists the files to read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from icefield.abc.access import FileAccess
from icefield.base.structs import decodable

if TYPE_CHECKING:
    from icefield.expressions import BooleanExpression

Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


@dataclass(frozen=True, slots=True)
class ScanPlanRequest:
    """A request to plan a scan.

    ``snapshot_id`` is the version. ``columns`` are the names that are read, nested ones with dots. ``row_filter`` is
    bound. ``of_snapshot``: names refer to the snapshot's schema, not to the table's current schema. ``limit``: the
    maximum number of rows. ``begin``: plan only appends after that snapshot, up to the version. ``statistics``: the
    columns to list statistics for, with each file.
    """

    snapshot_id: int
    columns: tuple[str, ...]
    row_filter: BooleanExpression
    case_sensitive: bool = True
    of_snapshot: bool = False
    limit: int | None = None
    begin: int | None = None
    statistics: tuple[str, ...] = ()


@decodable
class ListedNumbers(msgspec.Struct, frozen=True, gc=False):
    """Numbers by field id, as two lists."""

    keys: tuple[Number, ...] = ()
    values: tuple[Number, ...] = ()


@decodable
class ListedValues(msgspec.Struct, frozen=True, gc=False):
    """Values by field id, as two lists: in the JSON form of the field's type, or as bytes in hexadecimal digits."""

    keys: tuple[Number, ...] = ()
    values: tuple[Any, ...] = ()


@decodable
class ListedFile(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", gc=False):
    """A data file or a delete file as a service lists it, in JSON by the names of the REST protocol.

    ``content`` is ``data``, ``position-deletes`` or ``equality-deletes``. ``partition`` has the JSON form of a value
    for each field of the spec, in order, or by field id.
    """

    file_path: str
    file_format: str
    record_count: Number
    file_size_in_bytes: Number
    content: str = "data"
    spec_id: Number = 0
    partition: tuple[Any, ...] | dict[str, Any] = ()
    split_offsets: tuple[Number, ...] | None = None
    sort_order_id: Number | None = None
    first_row_id: Number | None = None
    equality_ids: tuple[Number, ...] | None = None
    referenced_data_file: str | None = None
    content_offset: Number | None = None
    content_size_in_bytes: Number | None = None
    column_sizes: ListedNumbers | None = None
    value_counts: ListedNumbers | None = None
    null_value_counts: ListedNumbers | None = None
    nan_value_counts: ListedNumbers | None = None
    lower_bounds: ListedValues | None = None
    upper_bounds: ListedValues | None = None
    key_metadata: str | None = None

    def __repr__(self) -> str:  # the key metadata holds a key
        return f"ListedFile({self.file_path!r})"


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """A part of a plan: data files, and for each the indexes of its delete files in ``delete_files``."""

    files: Sequence[ListedFile]
    deletes: Sequence[Sequence[int]]
    delete_files: Sequence[ListedFile] = ()


@dataclass(frozen=True, slots=True)
class ScanListing:
    """A plan of a service: its parts, and the credentials for its files if they differ from the table's.

    Closing ``parts`` early tells the service to stop planning.
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
