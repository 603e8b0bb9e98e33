"""Row changes of tables and transactions: rows are written into files at once, and an action adds the files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysTrue, BooleanExpression, Filter, as_expression
from icefield.manifest import FILE_PATH, DataFile
from icefield.metadata import MAIN_BRANCH
from icefield.schema import Schema, as_schema
from icefield.transaction.action import ActionContext
from icefield.transaction.builders import ChangeBuilders
from icefield.transaction.change_stream.apply_changes import StreamOfChanges, apply_changes, delete_key_ids
from icefield.transaction.conflicts import IsolationLevel
from icefield.transaction.files.append import AppendFiles
from icefield.transaction.files.equality_delta import EqualityDelta
from icefield.transaction.files.replace_partitions import ReplacePartitions
from icefield.transaction.head.branch_head import Head, head_of
from icefield.transaction.head.filtering import RowFilter
from icefield.transaction.row_level.action import since_head
from icefield.transaction.row_level.filtered_rows import OverwriteRows, UpdateRows
from icefield.transaction.row_level.upsert import UpsertRows, key_names
from icefield.transaction.rows import Rows, batches_of, lacking, table_of, with_columns_known, write_rows
from icefield.transaction.snapshots.write_result import WriteResult
from icefield.types.reserved import CHANGE_TYPE
from icefield.writing.deletes import DeleteContext, write_equality_deletes

_NO_STRINGS: Mapping[str, str] = {}


class RowChanges(ChangeBuilders):
    """Changes of rows, staged in a transaction. ``Table`` has them too, each in a commit of its own.

    Raises ``InvalidArgument`` for rows that the table cannot hold.
    """

    @property
    @abstractmethod
    def context(self) -> ActionContext:
        """The file IO, and the account of written files."""

    @abstractmethod
    def expect_branch(self, branch: str | None) -> None:
        """Raise the commit's error for a branch that takes no commit, before any file is written."""

    def append(
        self,
        df: Rows,
        snapshot_properties: Mapping[str, str] = _NO_STRINGS,
        branch: str | None = MAIN_BRANCH,
        *,
        merge_schema: bool = False,
    ) -> WriteResult:
        """Add rows: Arrow data, a frame of any library, a dataset, a dict of columns, or an iterable of dicts.

        Columns are matched by name; ``merge_schema`` adds columns that the table lacks, as optional ones.
        ``snapshot_properties`` go into the snapshot's summary. ``branch`` must exist; None stages the snapshot, for
        ``manage_snapshots().cherry_pick`` to publish. The same holds for every change of rows.
        """
        action = AppendFiles(self.stage, branch=branch, snapshot_properties=snapshot_properties)
        action.append_fresh(self._write(df, branch, merge_schema)).commit()
        return action.write_result

    def overwrite(
        self,
        df: Rows,
        overwrite_filter: Filter = AlwaysTrue(),  # noqa: B008 -- immutable
        snapshot_properties: Mapping[str, str] = _NO_STRINGS,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
        isolation_level: IsolationLevel | str | None = None,
        *,
        merge_schema: bool = False,
    ) -> WriteResult:
        """Delete the rows that match a filter (all by default) and add others, in one step.

        The filter is evaluated on the table as it is when the change is committed. With ``isolation_level``
        ``serializable`` the change fails when rows that may match were added, changed or removed since the table was
        loaded; with ``snapshot`` it fails when such rows were changed or removed. By default the table property
        ``write.delete.isolation-level`` applies, if it is set. The same holds for all changes of rows.
        """
        files = self._write(df, branch, merge_schema)
        return self._overwrite(overwrite_filter, snapshot_properties, case_sensitive, branch, isolation_level, files)

    def delete(
        self,
        delete_filter: Filter = AlwaysTrue(),  # noqa: B008 -- immutable
        snapshot_properties: Mapping[str, str] = _NO_STRINGS,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
        isolation_level: IsolationLevel | str | None = None,
    ) -> WriteResult:
        """Delete the rows that match a filter; all by default. A row with an unknown result (null) stays.

        Files in which all rows match are dropped. Other files with matching rows are rewritten without them, or their
        rows are marked as deleted if the table property ``write.delete.mode`` says so.
        """
        return self._overwrite(delete_filter, snapshot_properties, case_sensitive, branch, isolation_level, ())

    def update(
        self,
        where: Filter,
        set: Mapping[Any, Any],
        snapshot_properties: Mapping[str, str] = _NO_STRINGS,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
        isolation_level: IsolationLevel | str | None = None,
    ) -> WriteResult:
        """Update columns of the rows that match a filter: ``table.update("id = 3", {"state": "sold"})``.

        A row with an unknown result (null) does not change. ``set`` maps names of columns, and of fields of structs
        (``"a.b"``), to their new values: a literal, a ``pyarrow.compute.Expression`` over the table's columns, or a
        function from a record batch of the matching rows to an Arrow array. All values are computed from the old rows.
        Raises ``InvalidArgument`` for values that a column cannot hold.
        """
        action = UpdateRows(
            self.stage,
            self.shape.schema(),
            self._expression_of(where),
            set,
            case_sensitive=case_sensitive,
            branch=branch,
            snapshot_properties=snapshot_properties,
        )
        action.isolate(isolation_level, since_head(self.shape, branch)).commit()
        return action.write_result

    def dynamic_partition_overwrite(
        self,
        df: Rows,
        snapshot_properties: Mapping[str, str] = _NO_STRINGS,
        branch: str | None = MAIN_BRANCH,
        *,
        merge_schema: bool = False,
    ) -> WriteResult:
        """Replace the partitions of the given rows, and leave all others as they are.

        Without partitions the whole table is replaced. Raises ``ValidationFailed`` where files of other partition specs
        may hold rows of these partitions, since they would stay beside the new rows: write such files anew first
        (``rewrite_data_files(rewrite_all=True)``), or use ``overwrite``.
        """
        action = ReplacePartitions(self.stage, branch=branch, snapshot_properties=snapshot_properties)
        action.add_fresh(self._write(df, branch, merge_schema)).commit()
        return action.write_result

    def append_files(
        self,
        files: Iterable[DataFile],
        snapshot_properties: Mapping[str, str] = _NO_STRINGS,
        branch: str | None = MAIN_BRANCH,
    ) -> WriteResult:
        """Add data files that were written elsewhere with the table's ``write_context``."""
        action = AppendFiles(self.stage, branch=branch, snapshot_properties=snapshot_properties)
        action.append_fresh(files).commit()
        return action.write_result

    def overwrite_files(
        self,
        files: Iterable[DataFile],
        overwrite_filter: Filter = AlwaysTrue(),  # noqa: B008 -- immutable
        snapshot_properties: Mapping[str, str] = _NO_STRINGS,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
        isolation_level: IsolationLevel | str | None = None,
    ) -> WriteResult:
        """``overwrite`` with data files that were written elsewhere with the table's ``write_context``."""
        return self._overwrite(overwrite_filter, snapshot_properties, case_sensitive, branch, isolation_level, files)

    def matching_files(
        self,
        row_filter: BooleanExpression | str,
        branch: str | None = MAIN_BRANCH,
        case_sensitive: bool = True,
    ) -> tuple[list[str], list[str]]:
        """The data files in which all rows match a filter, and the files in which some may match, by their manifests.

        For engines that rewrite files themselves: they need not read the files of the first list.
        """
        head = Head(self.shape, head_of(self.shape, branch), self.context.io)
        found: tuple[list[str], list[str]] = ([], [])
        for match in RowFilter(head, as_expression(row_filter), case_sensitive).matches():
            for mask, paths in zip((match.whole, match.some), found, strict=True):
                paths += match.entries.column(FILE_PATH).filter(pa.array(mask)).to_pylist()
        return found

    def upsert(
        self,
        df: Rows,
        join_cols: Sequence[str] | str | None = None,
        when_matched_update_all: bool = True,
        when_not_matched_insert_all: bool = True,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = _NO_STRINGS,
        isolation_level: IsolationLevel | str | None = None,
    ) -> WriteResult:
        """Replace the rows that have the key of a given row, and add the given rows with new keys.

        ``join_cols`` are the columns of the key; the schema's identifier fields by default. Raises
        ``InvalidArgument`` for a repeated key.
        """
        if not (when_matched_update_all or when_not_matched_insert_all):
            raise InvalidArgument("an upsert updates, or inserts, or both; it was asked to do neither")
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
        action.isolate(isolation_level, since_head(self.shape, branch)).commit()
        return action.write_result

    def delete_by_equality(
        self,
        df: Rows,
        columns: Sequence[str] | None = None,
        snapshot_properties: Mapping[str, str] = _NO_STRINGS,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
    ) -> WriteResult:
        """Delete the rows that equal a given row in some columns, without reading the table; null equals null.

        Writes equality delete files, which are cheap to write and expensive to read until they are compacted.
        ``columns`` are full names; the schema's identifier fields by default. In a partitioned table the rows also need
        the source columns of the partitioning, and rows of other partitions stay. Data files of earlier specs are
        reached as well; the source columns of these specs must be among the columns. Not for tables of version 1.
        Raises ``InvalidArgument``, ``UnsupportedFeature``.
        """
        self.expect_branch(branch)
        ids = delete_key_ids(self.shape.schema(), columns, case_sensitive)
        deletes = DeleteContext.from_metadata(self.shape, self.context.io)
        files = write_equality_deletes(deletes, ids, batches_of(df), note=self.context.written.add)
        action = EqualityDelta(self.stage, branch=branch, snapshot_properties=snapshot_properties)
        action.add_deletes(*files).commit()
        return action.write_result

    def apply_changes(
        self,
        changes: StreamOfChanges,
        columns: Sequence[str] | None = None,
        operation_column: str = CHANGE_TYPE.name,
        upsert: bool | None = None,
        snapshot_properties: Mapping[str, str] = _NO_STRINGS,
        case_sensitive: bool = True,
        branch: str | None = MAIN_BRANCH,
    ) -> WriteResult:
        """Bring a stream of changes into the table, in its order and without reading the table.

        ``changes`` are rows with a column that says what happened to each (INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE
        as in a changelog, or the short forms of Flink and Debezium), or pairs of such an operation and rows.
        ``columns`` identify a row; the schema's identifier fields by default. With ``upsert`` (by default from
        ``write.upsert.enabled``) inserts and updates replace any row with their key; see
        ``icefield.transaction.ChangeWriter``. A very long stream becomes several snapshots of one commit.

        Rows of earlier commits are deleted by equality, rows of the stream by position. Not for tables of version 1.
        Raises ``InvalidArgument``, ``UnsupportedFeature``.
        """
        self.expect_branch(branch)
        return apply_changes(
            self.shape,
            self.context,
            self.stage,
            changes,
            delete_key_ids(self.shape.schema(), columns, case_sensitive),
            operation_column=operation_column,
            upsert=upsert,
            options={"branch": branch, "snapshot_properties": snapshot_properties},
        )

    def _overwrite(
        self,
        row_filter: Filter,
        strings: Mapping[str, str],
        case_sensitive: bool,
        branch: str | None,
        level: IsolationLevel | str | None,
        files: Iterable[DataFile],
    ) -> WriteResult:
        action = OverwriteRows(
            self.stage,
            self._expression_of(row_filter),
            case_sensitive=case_sensitive,
            branch=branch,
            snapshot_properties=strings,
        )
        action.add_fresh(files).isolate(level, since_head(self.shape, branch)).commit()
        return action.write_result

    def _expression_of(self, given: Filter) -> BooleanExpression:
        return self.context.io.plugins.expression_of(given, self.shape.schema)

    def _write(self, df: Any, branch: str | None, merge_schema: bool) -> list[DataFile]:
        self.expect_branch(branch)
        rows = batches_of(df)
        if merge_schema:
            columns, rows = with_columns_known(rows)
            given = as_schema(columns, self.shape.format_version)
            if new := lacking(self.shape.schema().fields, given.fields):
                self.update_schema().union_by_name(Schema(*new)).commit()
        # Each file is noted before it is begun, so that it can be deleted after an interrupt at any step.
        return write_rows(self.shape, self.context, rows)
