"""The changes of rows that tables and transactions offer: data goes into files at once, the files into an action."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysTrue, BooleanExpression
from icefield.manifest.data_file import DataFile
from icefield.metadata import TableMetadata
from icefield.metadata.properties import NAME_MAPPING_DEFAULT
from icefield.metadata.refs import MAIN_BRANCH
from icefield.transaction.action import Action, ActionContext
from icefield.transaction.add_files import FileDescriber, distinct_locations
from icefield.transaction.append import AppendFiles
from icefield.transaction.conflicts import IsolationLevel
from icefield.transaction.overwrite_rows import OverwriteRows
from icefield.transaction.replace_partitions import ReplacePartitions
from icefield.transaction.rows import Rows, batches_of, table_of, write_rows
from icefield.transaction.update_properties import UpdateProperties
from icefield.transaction.update_snapshot import UpdateSnapshot
from icefield.transaction.upsert import UpsertResult, UpsertRows, key_names

Texts = Mapping[str, str]
_NO_TEXTS: Texts = {}


class RowChanges(ABC):
    """Changes of rows, staged in a transaction.

    ``df`` is a pyarrow table, record batch or reader, an iterable of record batches, or anything that exports an Arrow
    stream (pandas, Polars, DuckDB). Columns are matched by name. ``snapshot_properties`` go into the snapshot's
    summary. ``branch`` is the branch to change, which must be there; None stages the snapshot, for
    ``manage_snapshots().cherry_pick`` to publish. Raises ``InvalidArgument`` for rows that the table cannot hold.
    """

    @property
    @abstractmethod
    def shape(self) -> TableMetadata:
        """The schema, spec, properties and location that new files follow."""

    @property
    @abstractmethod
    def context(self) -> ActionContext:
        """The file IO, and the account of what is written."""

    @abstractmethod
    def stage(self, action: Action) -> None:
        """Add an action."""

    @abstractmethod
    def expect_branch(self, branch: str | None) -> None:
        """Raise what the commit would for a branch that takes none, before anything is written for it."""

    def append(self, df: Rows, snapshot_properties: Texts = _NO_TEXTS, branch: str | None = MAIN_BRANCH) -> None:
        """Add rows."""
        action = AppendFiles(self.stage, branch=branch, snapshot_properties=snapshot_properties)
        action.append_fresh(self._write(df, branch)).commit()

    def overwrite(
        self,
        df: Rows,
        overwrite_filter: BooleanExpression | str = AlwaysTrue(),  # noqa: B008 -- immutable
        snapshot_properties: Texts = _NO_TEXTS,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
        isolation_level: IsolationLevel | str | None = None,
    ) -> None:
        """Delete the rows that match a filter (all, unless told) and add others, in one step.

        The filter is evaluated on the table as it is when the change is committed. With ``isolation_level``
        ``serializable`` the change fails when rows that may match were added, changed or removed since the table was
        loaded; with ``snapshot`` it fails when such rows were changed or removed.
        """
        files = self._write(df, branch)
        self._overwrite(overwrite_filter, snapshot_properties, case_sensitive, branch, isolation_level, files)

    def delete(
        self,
        delete_filter: BooleanExpression | str = AlwaysTrue(),  # noqa: B008 -- immutable
        snapshot_properties: Texts = _NO_TEXTS,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
        isolation_level: IsolationLevel | str | None = None,
    ) -> None:
        """Delete the rows that match a filter; all, unless told. A row for which it is unknown (null) stays.

        Files all of whose rows match are dropped; those that hold others too are written anew without them.
        """
        self._overwrite(delete_filter, snapshot_properties, case_sensitive, branch, isolation_level, ())

    def dynamic_partition_overwrite(
        self, df: Rows, snapshot_properties: Texts = _NO_TEXTS, branch: str | None = MAIN_BRANCH
    ) -> None:
        """Replace the partitions that rows are given for, and leave all others as they are."""
        action = ReplacePartitions(self.stage, branch=branch, snapshot_properties=snapshot_properties)
        action.add_fresh(self._write(df, branch)).commit()

    def append_files(
        self, files: Iterable[DataFile], snapshot_properties: Texts = _NO_TEXTS, branch: str | None = MAIN_BRANCH
    ) -> None:
        """Add data files that were written elsewhere with the table's ``write_context``."""
        action = AppendFiles(self.stage, branch=branch, snapshot_properties=snapshot_properties)
        action.append_fresh(files).commit()

    def overwrite_files(
        self,
        files: Iterable[DataFile],
        overwrite_filter: BooleanExpression | str = AlwaysTrue(),  # noqa: B008 -- immutable
        snapshot_properties: Texts = _NO_TEXTS,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
        isolation_level: IsolationLevel | str | None = None,
    ) -> None:
        """``overwrite`` with data files that were written elsewhere with the table's ``write_context``."""
        self._overwrite(overwrite_filter, snapshot_properties, case_sensitive, branch, isolation_level, files)

    def upsert(
        self,
        df: Rows,
        join_cols: Sequence[str] | None = None,
        when_matched_update_all: bool = True,
        when_not_matched_insert_all: bool = True,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Texts = _NO_TEXTS,
    ) -> UpsertResult:
        """Replace the rows that have the key of a given row, and add the given rows with new keys.

        ``join_cols`` are the columns of the key; the schema's identifier fields, unless told. Raises
        ``InvalidArgument`` for a key that is given twice.
        """
        if not (when_matched_update_all or when_not_matched_insert_all):
            raise InvalidArgument("an upsert updates, or inserts, or both; it was told to do neither")
        schema = self.shape.schema()
        action = UpsertRows(
            self.stage,
            schema,
            table_of(df),
            key_names(schema, join_cols, case_sensitive),
            update=when_matched_update_all,
            insert=when_not_matched_insert_all,
            branch=branch,
            snapshot_properties=snapshot_properties,
        )
        action.commit()
        return action.result

    def add_files(
        self,
        file_paths: Iterable[str],
        snapshot_properties: Texts = _NO_TEXTS,
        check_duplicate_files: bool = True,
        branch: str | None = MAIN_BRANCH,
    ) -> None:
        """Take files that were written elsewhere into the table, where they lie; the format is told by their names.

        Each must lie in one partition. Where a file has no field ids and the table no name mapping, one is stored.
        ``check_duplicate_files`` makes sure on commit that no file is in the table already. Raises
        ``InvalidArgument``, ``InvalidFile`` for columns that the table's cannot be read from, ``FileMissing``.
        """
        self.expect_branch(branch)
        describer = FileDescriber(self.shape, self.context.io)
        files = [describer.describe(location) for location in distinct_locations(file_paths)]
        if describer.needs_mapping and NAME_MAPPING_DEFAULT.name not in self.shape.properties:
            UpdateProperties(self.stage).set({NAME_MAPPING_DEFAULT.name: describer.mapping.to_text()}).commit()
        action = AppendFiles(self.stage, branch=branch, snapshot_properties=snapshot_properties)
        (action.append_file(*files) if check_duplicate_files else action.append_fresh(files)).commit()

    def update_snapshot(
        self, snapshot_properties: Texts = _NO_TEXTS, branch: str | None = MAIN_BRANCH
    ) -> UpdateSnapshot:
        """Changes of files, for whoever has written the files themselves."""
        return UpdateSnapshot(self.stage, branch=branch, snapshot_properties=snapshot_properties)

    def _overwrite(
        self,
        row_filter: BooleanExpression | str,
        texts: Texts,
        case_sensitive: bool,
        branch: str | None,
        level: IsolationLevel | str | None,
        files: Iterable[DataFile],
    ) -> None:
        action = OverwriteRows(
            self.stage, row_filter, case_sensitive=case_sensitive, branch=branch, snapshot_properties=texts
        )
        action.add_fresh(files).isolate(level, self.shape.head(branch or MAIN_BRANCH)).commit()

    def _write(self, df: Any, branch: str | None) -> list[DataFile]:
        self.expect_branch(branch)
        # Noted before they are begun: an interrupt at any step finds them.
        return write_rows(self.shape, self.context.io, batches_of(df), self.context.written.add)
