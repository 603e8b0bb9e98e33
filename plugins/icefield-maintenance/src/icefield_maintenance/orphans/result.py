"""The result of a search for orphan files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from icefield.toolkit import html_of, short_repr

SCHEMA: Final = pa.schema(
    [
        pa.field("location", pa.string(), False),
        pa.field("size", pa.int64(), False),
        pa.field("modified_ms", pa.int64(), False),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RemoveOrphanFilesResult:
    """The orphan files of a search. They were deleted, except for ``undeleted`` files, and except in a dry run.

    ``orphans`` has a row a file: ``location``, ``size`` in bytes, ``modified_ms`` since 1970 UTC by the store's clock.
    """

    orphans: pa.Table = field(repr=False)
    dry_run: bool = True
    undeleted: int = 0
    """Files that the store did not delete. The log says why."""

    listed: int = 0
    """Files below the location, of the table or not."""

    others: tuple[str, ...] = ()
    """Folders at or below the location that hold metadata files of other tables: nothing in them is an orphan."""

    __repr__ = short_repr
    _repr_html_ = html_of

    @property
    def files(self) -> int:
        """How many orphan files there are."""
        return int(self.orphans.num_rows)

    @property
    def bytes(self) -> int:
        """The size of all orphan files."""
        return int(pc.sum(self.orphans.column("size")).as_py() or 0)
