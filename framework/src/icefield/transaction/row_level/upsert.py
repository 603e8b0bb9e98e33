"""Upserts: given rows replace the rows of the table with their key, or are added if there is none.

A join of whole columns, pruned by the bounds of the keys; never a filter with a literal for each key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from icefield.errors import InvalidArgument
from icefield.manifest.data_file import DataFile
from icefield.metadata.properties import MERGE_ISOLATION_LEVEL, MERGE_MODE
from icefield.metadata.refs import MAIN_BRANCH
from icefield.schema import Schema
from icefield.transaction.action import Action
from icefield.transaction.head.branch_head import Head
from icefield.transaction.row_level.action import RowLevelAction
from icefield.transaction.row_level.changed_files import FileResult
from icefield.transaction.row_level.edits import NO_ROWS, EditResult, Ints, RowEdit
from icefield.transaction.row_level.key_join import Keys, differing
from icefield.transaction.rows import conformed
from icefield.types.values import distinct


class UpsertRows(RowLevelAction):
    """Replace the rows that have the key of a given row and differ from it, and add the given rows with new keys.

    A null in a key equals nothing.
    """

    mode = MERGE_MODE
    isolation = MERGE_ISOLATION_LEVEL

    def __init__(
        self,
        stage: Callable[[Action], None],
        schema: Schema,
        rows: pa.Table,
        keys: Sequence[str],
        *,
        update: bool = True,
        insert: bool = True,
        branch: str | None = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(stage, branch=branch, snapshot_properties=snapshot_properties)
        self._rows = conformed(schema, rows)
        self._keys = Keys(self._rows, keys)
        self._keys.refuse_duplicates()
        self._update, self._insert = update, insert
        self._schema = schema

    def _edit(self, head: Head) -> RowEdit:
        return _RowsByKey(head.metadata.schema(), self._keys, self._rows, self._update)

    def _others(self, head: Head, changed: Sequence[FileResult]) -> Sequence[DataFile]:
        new = np.full(len(self._rows), self._insert)
        for one in changed:
            new[one.met] = False
        return self._files.inserted(new, lambda: [self._rows.filter(pa.array(new))], self._schema)


class _RowsByKey(RowEdit):
    """Replaces the rows that have the key of a given row and differ from it by that row."""

    def __init__(self, schema: Schema, keys: Keys, rows: pa.Table, update: bool) -> None:
        ids = {name: schema.find_field((name,)).field_id for name in rows.column_names if schema.has_field((name,))}
        key_ids = frozenset(schema.find_field((name,)).field_id for name in keys.names)
        super().__init__(
            keys.range(schema),
            deciding=frozenset(ids.values()),
            keys=key_ids,
            own_rows=rows.num_rows,
            changes_met=update,
        )
        self._keys, self._rows = keys, rows
        self._others = rows.select([name for name, id_ in ids.items() if id_ not in key_ids])

    def met(self, batch: pa.RecordBatch) -> Ints:
        """The given rows with a key that is in the batch."""
        return distinct(self._keys.join(batch)[1])

    def may_change(self, met: Ints) -> bool:
        """Whether any row may be replaced."""
        return self.changes_met and len(met) > 0

    def found(self, batch: pa.RecordBatch) -> EditResult:
        """The rows to replace."""
        return self._found(batch)[0]

    def edited(self, batch: pa.RecordBatch) -> EditResult:
        """The rows to replace, and the given rows that replace them."""
        found, given = self._found(batch)
        (rows,) = self._rows.take(pa.array(given)).combine_chunks().to_batches() or [None] if len(given) else [None]
        return EditResult(found.gone, found.updated, rows, found.met)

    def _found(self, batch: pa.RecordBatch) -> tuple[EditResult, Ints]:
        here, given = self._keys.join(batch)
        if not len(here):
            return EditResult(NO_ROWS), NO_ROWS
        changes = differing(batch.select(self._others.column_names), here, self._others, given)
        return EditResult(here[changes], here[changes], met=distinct(given)), given[changes]


def key_names(schema: Schema, given: Sequence[str] | str | None, case_sensitive: bool) -> list[str]:
    """The columns that identify a row: the named columns, else the identifier fields. Raises ``InvalidArgument``."""
    columns = sorted(schema.identifier_field_names()) if given is None else given
    names = list(dict.fromkeys([columns] if isinstance(columns, str) else columns))
    if not names:
        raise InvalidArgument("name the columns that identify a row: join_cols, or the schema's identifier fields")
    fields = [schema.find_field(name, case_sensitive) for name in names]
    for name, field in zip(names, fields, strict=True):
        if schema.parent_of(field.field_id) is not None or not field.field_type.is_primitive:
            raise InvalidArgument(f"'{name}' cannot identify a row: only top-level columns of primitive types can")
    return [field.name for field in fields]
