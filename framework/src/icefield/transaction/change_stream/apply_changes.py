"""Writes a stream of changes into a table: by one writer after another, each with a snapshot of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from icefield.errors import InvalidArgument
from icefield.metadata import TableMetadata
from icefield.metadata.properties import UPSERT_ENABLED, get_bool
from icefield.schema import Schema
from icefield.transaction.action import Action, ActionContext
from icefield.transaction.change_stream.change_writer import ChangeWriter
from icefield.transaction.change_stream.kinds import ChangeKind, Kinds, change_kinds
from icefield.transaction.files.equality_delta import EqualityDelta
from icefield.transaction.rows import Rows, batches_of
from icefield.transaction.snapshots.write_result import WriteResult
from icefield.writing import DeleteContext, WriteContext
from icefield.writing.data_writer import pieces_of

ChangeOperation: TypeAlias = ChangeKind | str
StreamOfChanges: TypeAlias = Rows | Iterable[tuple[ChangeOperation, Rows]]
"""Rows with a column that says what happened to each, or pairs of an operation and rows."""

_ROWS_AT_ONCE: Final = 1 << 17


def delete_key_ids(schema: Schema, names: Sequence[str] | None, case_sensitive: bool) -> list[int]:
    """The ids of the columns that identify a row: the named columns, else the identifier fields.

    Raises ``InvalidArgument``.
    """
    if names is None:
        if not schema.identifier_field_ids:
            raise InvalidArgument("name the columns that identify a row: the schema has no identifier fields")
        return list(schema.identifier_field_ids)
    if isinstance(names, str):
        raise InvalidArgument(f"columns are given as a list of names, such as ['{names}']")
    return [schema.find_field(name, case_sensitive).field_id for name in names]


def apply_changes(
    shape: TableMetadata,
    context: ActionContext,
    stage: Callable[[Action], None],
    changes: Any,
    equality_ids: Sequence[int],
    *,
    operation_column: str,
    upsert: bool | None,
    options: Mapping[str, Any],
) -> WriteResult:
    """Write changes and stage actions that add their files; ``options`` are arguments of the actions.

    A full writer is followed by another one, with a snapshot of its own: its equality deletes apply to the rows of the
    snapshots before.
    """
    first: EqualityDelta | None = None
    by_key = get_bool(shape.properties, UPSERT_ENABLED) if upsert is None else upsert
    batches = _gathered(_changes(changes, operation_column))
    is_staged = options["branch"] is None  # no snapshot follows a staged one, so that one writer takes all changes
    more = True
    while more:
        writer = ChangeWriter(
            WriteContext.from_metadata(shape, context.io),
            DeleteContext.from_metadata(shape, context.io),
            equality_ids,
            upsert=by_key,
            note=context.written.add,
        )
        with writer:
            more = False
            for batch, kinds in batches:
                writer.write(batch, kinds)
                if more := writer.is_full and not is_staged:
                    break
            made = writer.close()
        action = EqualityDelta(stage, **options)
        first = action if first is None else first
        if action is not first:
            action.follow(first)
        action.add_fresh_rows(made.data_files).add_deletes(*made.delete_files).commit()
    assert first is not None
    return first.write_result


def _changes(changes: Any, column: str) -> Iterator[tuple[pa.RecordBatch, Kinds]]:
    """Batches without the column of the operation, and the kind of each row."""
    if isinstance(changes, pa.Table | pa.RecordBatch | pa.RecordBatchReader) or hasattr(changes, "__arrow_c_stream__"):
        changes = [changes]
    if not isinstance(changes, Iterable) or isinstance(changes, str | bytes | Mapping):
        changes = [batches_of(changes)]  # raises an error that names the accepted types
    elif isinstance(changes, Sequence) and changes and isinstance(changes[0], Mapping):
        changes = [batches_of(changes)]
    for change in changes:
        if isinstance(change, tuple) and len(change) == 2:
            kind = change[0] if isinstance(change[0], ChangeKind) else change_kinds(pa.array([change[0]]))[0]
            for batch in pieces_of(batches_of(change[1])):
                yield batch, np.full(batch.num_rows, kind, np.int8)
        else:
            for batch in pieces_of(batches_of(change)):
                if batch.schema.names.count(column) != 1:
                    raise InvalidArgument(
                        f"changes need one column '{column}' that says what happened to each row; name another with "
                        "operation_column, or give pairs of an operation and rows",
                        column=column,
                    )
                yield batch.drop_columns([column]), change_kinds(batch.column(column))


def _gathered(changes: Iterator[tuple[pa.RecordBatch, Kinds]]) -> Iterator[tuple[pa.RecordBatch, Kinds]]:
    """Combine small batches: each batch costs some milliseconds."""
    held: list[tuple[pa.RecordBatch, Kinds]] = []
    rows = 0
    for batch, kinds in changes:
        if held and (rows >= _ROWS_AT_ONCE or not batch.schema.equals(held[0][0].schema, check_metadata=True)):
            yield _joined(held)
            held, rows = [], 0
        held.append((batch, kinds))
        rows += batch.num_rows
    if held:
        yield _joined(held)


def _joined(held: list[tuple[pa.RecordBatch, Kinds]]) -> tuple[pa.RecordBatch, Kinds]:
    if len(held) == 1:
        return held[0]
    return pa.concat_batches([batch for batch, _ in held]), np.concatenate([kinds for _, kinds in held])
