"""The walk over the column chunks in a footer's bytes, which several guards share.

It may go with the last of the guards that use it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from icefield_parquet.thrift import LIST, STRUCT, read_field, read_list, skip

# Fields of FileMetaData, RowGroup and ColumnChunk: through them a ColumnMetaData is reached.
_ROW_GROUPS, _COLUMNS, _META_DATA = 4, 1, 3
_WAY: Final = ((_ROW_GROUPS, LIST), (_COLUMNS, LIST), (_META_DATA, STRUCT))
_COLUMNS_OF_A_ROW_GROUP = 1
"""How deep the way is where a list has an item for each column."""

Visit: TypeAlias = "Callable[[bytes, int, int], int]"
"""Gets the footer, where a ``ColumnMetaData`` begins, and which column of its row group it is; gives its end."""


def visit_chunks(footer: bytes, visit: Visit, columns: int | None = None) -> None:
    """Call ``visit`` for each column chunk, row group by row group.

    ``footer`` may be followed by other bytes. Raises ``ValueError`` for bytes that are not Thrift, and for a row group
    without exactly ``columns`` columns, if given; ``IndexError`` where the bytes end too early.
    """
    _visit(footer, 0, 0, 0, visit, columns)


def _visit(data: bytes, at: int, depth: int, column: int, visit: Visit, columns: int | None) -> int:
    """Visit the fields of a struct at a nesting ``depth`` below the footer's own; return its end."""
    if depth == len(_WAY):
        return visit(data, at, column)
    number = 0
    while True:
        kind, number, at = read_field(data, at, number)
        if not kind:
            return at
        if (number, kind) != _WAY[depth]:
            at = skip(data, at, kind)
        elif kind == LIST:
            _, count, at = read_list(data, at)
            if depth == _COLUMNS_OF_A_ROW_GROUP and columns not in (None, count):
                raise ValueError("a row group with another number of columns than the schema")
            for item in range(count):
                at = _visit(data, at, depth + 1, item, visit, columns)
        else:
            at = _visit(data, at, depth + 1, column, visit, columns)
