"""Row-level changes by files: adds data files and delete files, and removes others, in one step.

Spec: "Row-level Deletes". For writers that have written the files themselves: engines, and writers of change streams.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self

from icefield.errors import InvalidArgument, UnsupportedFeature
from icefield.expressions import AlwaysTrue, BooleanExpression, as_expression
from icefield.manifest import DataFile, DataFileContent, ManifestContent
from icefield.metadata.snapshots import Operation, Snapshot
from icefield.scan.deletes.targets import data_file_of
from icefield.transaction.action import ActionContext
from icefield.transaction.conflicts import Conflicts
from icefield.transaction.files.append import AddedFiles
from icefield.transaction.files.validated import ValidatedChange
from icefield.transaction.head.branch_head import Head, Mask, merged_masks
from icefield.transaction.head.filtering import RowFilter
from icefield.transaction.head.matching import NamedFiles
from icefield.transaction.snapshots.snapshot_producer import FileChanges

_ADDED: Final = "or leave out validate_no_conflicting_data_files, which snapshot isolation does without"
_DELETED: Final = "or leave out validate_no_conflicting_delete_files where the deletes do not depend on each other"
_DROPPED: Final = "or leave out validate_deleted_files, since rows of a file that was dropped are deleted anyway"


class RowDelta(ValidatedChange):
    """Add data files and delete files, and remove others. Files removed by name must still be live.

    Position deletes and deletion vectors name data files that their writer has read. Name the snapshot that was read by
    ``validate_from_snapshot``. A later commit that rewrote such a file is a conflict. If a later commit dropped such a
    file, its deletes are needless: a deletion vector or position delete file of this file alone is left out. The other
    validations determine the isolation level. A data file has one deletion vector: remove the replaced vector with
    ``remove_deletes``; any other is a conflict.
    """

    def _prepare(self) -> None:
        super()._prepare()
        self._rows = AddedFiles()
        self._deletes: dict[tuple[str, int | None], DataFile] = {}
        self._vectors: dict[str, DataFile] = {}
        self._removed_rows = NamedFiles()
        self._removed_deletes = NamedFiles()
        self._paths: set[str] = set()
        self._concern: BooleanExpression = AlwaysTrue()
        self._case_sensitive = True
        self._no_dropped = False

    def add_rows(self, *files: DataFile) -> Self:
        """Add data files. The commit checks that the table does not have them yet."""
        self._rows.add(files)
        return self

    def add_fresh_rows(self, files: Iterable[DataFile]) -> Self:
        """Add data files under names that the caller drew at random, which need not be looked for in the table."""
        self._rows.add(files, fresh=True)
        return self

    def add_deletes(self, *files: DataFile) -> Self:
        """Add delete files: position deletes, equality deletes or deletion vectors.

        Raises ``InvalidArgument`` for a file that holds no deletes, that comes twice or that lacks a required field.
        """
        for file in files:
            _check_deletes(file)
            key = (file.file_path, file.content_offset)
            if key in self._deletes:
                raise InvalidArgument(f"delete file {file.file_path} is added twice", location=file.file_path)
            if file.is_deletion_vector:
                path = str(file.referenced_data_file)
                if path in self._vectors:
                    raise InvalidArgument(f"data file {path} gets two deletion vectors", location=path)
                self._vectors[path] = file
            self._deletes[key] = file
        return self

    def remove_rows(self, *files: DataFile | str) -> Self:
        """Remove data files, with their deletion vectors and the position delete files of them alone."""
        self._removed_rows.add(*files)
        return self

    def remove_deletes(self, *files: DataFile | str) -> Self:
        """Remove delete files. A deletion vector is given as in a scan plan: its Puffin file may hold others."""
        self._removed_deletes.add(*files)
        return self

    def conflict_detection_filter(self, row_filter: str | BooleanExpression, *, case_sensitive: bool = True) -> Self:
        """Set the rows that were read: only commits that may concern them are conflicts. All rows by default."""
        self._concern = as_expression(row_filter)
        self._case_sensitive = case_sensitive
        return self

    def validate_data_files_exist(self, paths: Iterable[str | DataFile]) -> Self:
        """Fail when one of these data files was rewritten meanwhile: deletes of its positions would be lost.

        The data files of deletion vectors, and of position delete files of one data file, are checked anyway.
        """
        self._paths.update(path if isinstance(path, str) else path.file_path for path in paths)
        return self

    def validate_deleted_files(self) -> Self:
        """Fail also when such a data file was dropped meanwhile, for a change that replaces its rows by others."""
        self._no_dropped = True
        return self

    def validate_no_conflicting_data_files(self) -> Self:
        """Fail when files that may hold rows of the conflict filter were added meanwhile."""
        self._no_data = True
        return self

    def validate_no_conflicting_delete_files(self) -> Self:
        """Fail when rows of the conflict filter, or of a removed data file, were deleted meanwhile."""
        self._no_deletes = True
        return self

    def _is_filled(self) -> bool:
        return bool(self._rows.files() or self._deletes or self._removed_rows or self._removed_deletes)

    def find(self, head: Head, context: ActionContext) -> FileChanges:
        """The files to add and to remove on this base."""
        self._check_version(head.metadata.format_version)
        self._rows.refuse_live(head)
        rows = self._removed_rows.find(head, (ManifestContent.DATA,))
        deletes = self._removed_deletes.find(head, (ManifestContent.DELETES,))
        dropped = self._dropped(head)
        vectors = {path: vector for path, vector in self._vectors.items() if path not in dropped}
        conflicts = Conflicts(head, self._since)
        conflicts.no_other_vectors(vectors, deletes)
        conflicts.require_all(self._removed_rows, rows, "data files")
        conflicts.require_all(self._removed_deletes, deletes, "delete files")
        self._refuse_deletes_of_removed()
        self._validate(head, rows)
        kept = [file for file in self._deletes.values() if data_file_of(file) not in dropped]
        return FileChanges([*self._rows.files(), *kept], merged_masks(rows, deletes))

    def operation(self, changes: FileChanges) -> Operation:
        """Append if only rows are added; delete if only deletes are added, or only data files removed; or overwrite."""
        rows = any(file.content is DataFileContent.DATA for file in changes.added)
        deletes = any(file.content is not DataFileContent.DATA for file in changes.added)
        if not rows and (deletes or self._removed_rows):
            return Operation.DELETE
        return Operation.APPEND if rows and not deletes and not changes.removed else Operation.OVERWRITE

    def _check_version(self, version: int) -> None:
        positions = [file for file in self._deletes.values() if file.content is DataFileContent.POSITION_DELETES]
        if self._deletes and version < 2:
            raise UnsupportedFeature("a table of format version 1 has no row-level deletes; upgrade it to 2 or 3")
        if version < 3 and self._vectors:
            raise UnsupportedFeature(
                f"a table of format version {version} has no deletion vectors; upgrade it to version 3, or write "
                "position delete files"
            )
        if version > 2 and len(positions) > len(self._vectors):
            path = next(file.file_path for file in positions if not file.is_deletion_vector)
            raise UnsupportedFeature(
                f"a table of format version {version} takes no new position delete file, which {path} is; write "
                "deletion vectors",
                location=path,
            )

    def _refuse_deletes_of_removed(self) -> None:
        for file in self._deletes.values():
            path = data_file_of(file)
            if path is not None and path in self._removed_rows:
                raise InvalidArgument(f"data file {path} is removed, and deletes of it are added", location=path)

    def _dropped(self, head: Head) -> frozenset[str]:
        """The data files with rows to delete that were dropped since; the other data files must still be live."""
        referenced = {data_file_of(file) for file in self._deletes.values()}
        own = {file.file_path for file in self._rows.files()}
        paths = (self._paths | {path for path in referenced if path is not None}) - own
        if self._since is None:
            # No snapshot is known. A file that is live now was live when it was read.
            live = NamedFiles()
            live.add(*paths)
            live.require_all(head, live.find(head, (ManifestContent.DATA,)), "cannot delete rows of data files")
            return frozenset()
        conflicts = Conflicts(head, self._since)
        removed = conflicts.removed_files(paths)
        tolerated = {} if self._no_dropped else _by_delete(removed)
        rewritten = {path: snapshot for path, snapshot in removed.items() if path not in tolerated}
        conflicts.no_removed_files(rewritten, _DROPPED if _by_delete(rewritten) else "")
        return frozenset(tolerated)

    def _validate(self, head: Head, removed: dict[int, Mask]) -> None:
        conflicts = self._validating(head)
        if conflicts is None:
            return
        concern = RowFilter(head, self._concern, self._case_sensitive)
        if self._no_data:
            conflicts.no_new_data(concern, _ADDED)
        if self._no_deletes:
            conflicts.no_new_deletes_for(removed, remedy=_DELETED)
            conflicts.no_new_deletes(concern, _DELETED)


def _by_delete(removed: dict[str, Snapshot]) -> dict[str, Snapshot]:
    return {path: snapshot for path, snapshot in removed.items() if snapshot.operation is Operation.DELETE}


def _check_deletes(file: DataFile) -> None:
    """Raise ``InvalidArgument`` unless the file is a complete description of a delete file."""
    path = file.file_path
    why = None
    if file.content is DataFileContent.DATA:
        why = "holds data, not deletes"
    elif file.record_count < 0:
        why = f"has {file.record_count} deletes; count them first"
    elif file.content is DataFileContent.EQUALITY_DELETES and not file.equality_ids:
        why = "deletes rows by equality, and names no column"
    elif file.is_deletion_vector and None in (
        file.referenced_data_file,
        file.content_offset,
        file.content_size_in_bytes,
    ):
        why = "is a deletion vector, and lacks referenced_data_file, content_offset or content_size_in_bytes"
    if why is not None:
        raise InvalidArgument(f"{path} {why}", location=path)
