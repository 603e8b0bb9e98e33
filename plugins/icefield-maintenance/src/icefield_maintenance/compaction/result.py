"""The result of a rewrite of data files."""

from __future__ import annotations

from dataclasses import dataclass

from icefield.toolkit import html_of, short_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenGroup:
    """Data files that were rewritten together; sizes are in bytes. The result of a dry run has no added files.

    ``partition`` is the path of their partition, empty if there is none, or if they are in several partitions.
    """

    partition: str
    rewritten_data_files: int
    rewritten_bytes: int
    added_data_files: int = 0
    added_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RewriteDataFilesResult:
    """The result of a rewrite of data files, or its plan with ``dry_run``; sizes are in bytes.

    ``groups`` holds the committed groups. ``failed_data_files`` stay in the table: others changed them faster than
    they could be rewritten, or, with ``partial_progress``, their rewriting or commit failed. ``removed_delete_files``
    counts the files that ``remove_dangling_deletes`` dropped. ``snapshot_ids`` are the commits, in their order.
    """

    groups: tuple[RewrittenGroup, ...] = ()
    failed_groups: int = 0
    failed_data_files: int = 0
    failed_bytes: int = 0
    removed_delete_files: int = 0
    snapshot_ids: tuple[int, ...] = ()
    dry_run: bool = False

    __repr__ = short_repr
    _repr_html_ = html_of

    @property
    def snapshot_id(self) -> int | None:
        """The last commit; None where nothing was committed."""
        return self.snapshot_ids[-1] if self.snapshot_ids else None

    @property
    def rewritten_data_files(self) -> int:
        """How many files were replaced."""
        return sum(group.rewritten_data_files for group in self.groups)

    @property
    def rewritten_bytes(self) -> int:
        """The size of the files that were replaced."""
        return sum(group.rewritten_bytes for group in self.groups)

    @property
    def added_data_files(self) -> int:
        """How many files took their place."""
        return sum(group.added_data_files for group in self.groups)

    @property
    def added_bytes(self) -> int:
        """The size of the files that took their place."""
        return sum(group.added_bytes for group in self.groups)
