"""What rewrites of delete files did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteDeletesResult:
    """What was rewritten, or with ``dry_run`` would be.

    Files that are dropped because they delete no row of the table count as rewritten. Sizes are in bytes; a deletion
    vector counts with its own, not with that of its Puffin file. A dry run states nothing of what would be added.
    ``snapshot_id`` is None where nothing was committed. ``_taken``: which delete files would go, by their keys.
    """

    rewritten_position_delete_files: int = 0
    rewritten_deletion_vectors: int = 0
    rewritten_puffin_files: int = 0
    added_position_delete_files: int = 0
    added_deletion_vectors: int = 0
    added_puffin_files: int = 0
    rewritten_bytes: int = 0
    added_bytes: int = 0
    snapshot_id: int | None = None
    dry_run: bool = False
    _taken: pa.Array | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDanglingDeletesResult:
    """Which delete files were removed, or with ``dry_run`` would be; see ``RewriteDeletesResult`` for the sizes."""

    removed_position_delete_files: int = 0
    removed_deletion_vectors: int = 0
    removed_equality_delete_files: int = 0
    removed_bytes: int = 0
    snapshot_id: int | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertEqualityDeletesResult:
    """What was converted, or with ``dry_run`` would be.

    ``read_data_files`` were looked at, of ``read_bytes`` together, though only the columns of the keys are read;
    ``deleted_rows`` of them had no position delete before. Sizes of deletes are as in ``RewriteDeletesResult``.
    """

    converted_equality_delete_files: int = 0
    converted_bytes: int = 0
    read_data_files: int = 0
    read_bytes: int = 0
    deleted_rows: int = 0
    added_position_delete_files: int = 0
    added_deletion_vectors: int = 0
    added_bytes: int = 0
    snapshot_id: int | None = None
    dry_run: bool = False
    _taken: pa.Array | None = field(default=None, repr=False, compare=False)


def taken_by(results: Iterable[RewriteDeletesResult | ConvertEqualityDeletesResult]) -> list[pa.Array]:
    """Which delete files would go by dry runs, as ``DeleteSurvey.keys`` has them."""
    return [each._taken for each in results if each._taken is not None]
