"""The results of rewrites of delete files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
from icefield.toolkit import html_of, short_repr


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RewriteDeletesResult:
    """The result of a rewrite of position deletes, or its plan with ``dry_run``.

    Dropped files that delete no row of the table count as rewritten. Sizes are in bytes; a deletion vector counts with
    its own size, not with the size of its Puffin file. The result of a dry run has no added files. ``snapshot_id`` is
    None if nothing was committed. ``_taken`` holds the keys of the delete files that a dry run would remove.
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

    __repr__ = short_repr
    _repr_html_ = html_of


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RemoveDanglingDeletesResult:
    """The removed delete files, or the plan with ``dry_run``; see ``RewriteDeletesResult`` for the sizes."""

    removed_position_delete_files: int = 0
    removed_deletion_vectors: int = 0
    removed_equality_delete_files: int = 0
    removed_bytes: int = 0
    snapshot_id: int | None = None
    dry_run: bool = False

    __repr__ = short_repr
    _repr_html_ = html_of


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ConvertEqualityDeletesResult:
    """The result of a conversion of equality deletes, or its plan with ``dry_run``.

    ``read_bytes`` is the whole size of the ``read_data_files``, though the conversion reads only their key columns.
    ``deleted_rows`` counts the new positions. Sizes of deletes are as in ``RewriteDeletesResult``.
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

    __repr__ = short_repr
    _repr_html_ = html_of


def taken_by(results: Iterable[RewriteDeletesResult | ConvertEqualityDeletesResult]) -> list[pa.Array]:
    """The keys (``DeleteSurvey.keys``) of the delete files that dry runs would remove."""
    return [each._taken for each in results if each._taken is not None]
