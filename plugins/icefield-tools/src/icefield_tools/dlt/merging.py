"""The changes of a table chain: of a root table of dlt, and of the nested tables below it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from dlt.common.destination.typing import PreparedTableSchema
from dlt.common.schema.utils import get_columns_names_with_prop, get_dedup_sort_tuple, get_first_column_name_with_prop
from dlt.destinations.sql_jobs import SqlMergeFollowupJob
from icefield.transaction import Transaction

_NUMBER = "__icefield_number"

Change = Callable[[Transaction[Any]], None]
"""Stages what a load changes in one table."""


@dataclass(frozen=True)
class ChainTable:
    """A table of a chain: its hints, and the rows of a load, in the table's columns."""

    hints: PreparedTableSchema
    files: pads.Dataset | None
    columns: pa.Schema

    @property
    def name(self) -> str:
        """The name within its dataset."""
        return str(self.hints["name"])

    def read(self) -> pa.Table:
        """The rows in memory."""
        return self.columns.empty_table() if self.files is None else self.files.to_table()


@dataclass(frozen=True)
class Merging:
    """The merge of a chain by its keys, in the steps of dlt's own SQL.

    ``matching`` gives, for a table, columns of a key and rows with these columns, the row keys of the rows that the
    table has for them.
    """

    chain: Sequence[ChainTable]
    marks: Mapping[str, str]
    matching: Callable[[str, pa.Table, str], pa.Array]

    @property
    def _root(self) -> ChainTable:
        return self.chain[0]

    def _row_key(self, table: ChainTable) -> str:
        return str(SqlMergeFollowupJob.get_row_key_col(self._schemas, table.hints, "", ""))

    def _root_key(self, table: ChainTable) -> str:
        return str(SqlMergeFollowupJob.get_root_key_col(self._schemas, table.hints, "", ""))

    @property
    def _schemas(self) -> list[PreparedTableSchema]:
        return [table.hints for table in self.chain]

    def changes(self, strategy: str) -> dict[str, Change]:
        """What each table changes, by the merge strategies of dlt: the root first."""
        merged = {"delete-insert": self._delete_insert, "upsert": self._upsert, "insert-only": self._insert_only}
        return merged[strategy]()

    def _kept(self) -> tuple[pa.Table, pa.Table, pa.Table]:
        """The rows of the root: all, those that stay after deduplication, and those that are marked as deleted."""
        root, rows = self._root.hints, self._root.read()
        primary = get_columns_names_with_prop(root, "primary_key")
        single = distinct(rows, primary, get_dedup_sort_tuple(root)) if primary else rows
        column = get_first_column_name_with_prop(root, "hard_delete")
        if column is None:
            return rows, single, rows.slice(0, 0)
        is_flag = root["columns"][column]["data_type"] == "bool"
        deleted = pc.fill_null(single[column], False) if is_flag else pc.is_valid(single[column])
        return rows, single.filter(pc.invert(deleted)), single.filter(deleted)

    def _delete_insert(self) -> dict[str, Change]:
        rows, kept, _ = self._kept()
        root = self._root
        keys = [get_columns_names_with_prop(root.hints, each) for each in ("primary_key", "merge_key")]
        selected = [distinct(rows.select(columns), columns) for columns in keys if columns]

        def change_root(part: Transaction[Any]) -> None:
            for each in selected:
                self._delete(part, each)
            self._append(part, kept)

        found: dict[str, Change] = {root.name: change_root}
        if len(self.chain) == 1:
            return found
        row_key = self._row_key(root)
        replaced = [self.matching(root.name, each, row_key) for each in selected]
        gone = pa.chunked_array(replaced, rows.schema.field(row_key).type) if replaced else None
        for table in self.chain[1:]:
            found[table.name] = self._replace_nested(table, gone, kept[row_key])
        return found

    def _upsert(self) -> dict[str, Change]:
        rows, kept, deleted = self._kept()
        root = self._root
        primary = get_columns_names_with_prop(root.hints, "primary_key")

        def change_root(part: Transaction[Any]) -> None:
            self._delete(part, deleted.select(primary))
            if kept.num_rows:
                part.upsert(kept, primary, snapshot_properties=self.marks)

        found: dict[str, Change] = {root.name: change_root}
        for table in self.chain[1:]:
            row_key = self._row_key(root)  # a digest of the primary key: the rows of the table have the same
            found[table.name] = self._replace_nested(table, rows[row_key], kept[row_key])
        return found

    def _insert_only(self) -> dict[str, Change]:
        kept = {table.name: distinct(table.read(), [self._row_key(table)]) for table in self.chain[1:]}
        kept[self._root.name] = self._kept()[1]
        on = {table.name: [self._row_key(table)] for table in self.chain[1:]}
        on[self._root.name] = get_columns_names_with_prop(self._root.hints, "primary_key")

        def change(name: str) -> Change:
            def insert(part: Transaction[Any]) -> None:
                if kept[name].num_rows:
                    merge = part.merge(kept[name], on[name], snapshot_properties=self.marks)
                    merge.when_not_matched_insert_all().commit()

            return insert

        return {table.name: change(table.name) for table in self.chain}

    def _replace_nested(self, table: ChainTable, gone: pa.ChunkedArray | None, kept: pa.ChunkedArray) -> Change:
        """Delete the rows below the root rows that are ``gone``, and add those below the root rows that are kept."""
        root_key = self._root_key(table)
        rows = distinct(table.read(), [self._row_key(table)])
        added = rows.filter(pc.is_in(rows[root_key], kept.combine_chunks()))

        def change(part: Transaction[Any]) -> None:
            if gone is not None:
                self._delete(part, distinct(pa.table({root_key: gone}), [root_key]))
            self._append(part, added)

        return change

    def _delete(self, part: Transaction[Any], keys: pa.Table) -> None:
        if keys.num_rows:
            merge = part.merge(keys, keys.column_names, snapshot_properties=self.marks)
            merge.when_matched_delete().commit()

    def _append(self, part: Transaction[Any], rows: pa.Table) -> None:
        if rows.num_rows:
            part.append(rows, snapshot_properties=self.marks)


def distinct(rows: pa.Table, keys: Sequence[str], sort: tuple[str, str] | None = None) -> pa.Table:
    """The last row for each key, or the first by the order of a column; a null comes after all values."""
    if sort is not None:
        order = "ascending" if sort[1] == "desc" else "descending"
        is_valid = pc.cast(pc.is_valid(rows[sort[0]]), pa.int8())
        keyed = pa.table({"is_valid": is_valid, "value": rows[sort[0]]})
        rows = rows.take(pc.sort_indices(keyed, sort_keys=[("is_valid", "ascending"), ("value", order)]))
    numbered = rows.select(keys).append_column(_NUMBER, pa.array(range(rows.num_rows), pa.int64()))
    last = numbered.group_by(list(keys)).aggregate([(_NUMBER, "max")])[f"{_NUMBER}_max"]
    return rows if len(last) == rows.num_rows else rows.take(last.take(pc.sort_indices(last)))


def written(table: ChainTable, marks: Mapping[str, str], *, replace: bool) -> Change:
    """The change that appends the rows, or replaces all rows by them."""

    def change(part: Transaction[Any]) -> None:
        if replace and table.files is None:
            part.delete(snapshot_properties=marks)
        elif replace:
            part.overwrite(table.files, snapshot_properties=marks)
        elif table.files is not None:
            part.append(table.files, snapshot_properties=marks)

    return change
