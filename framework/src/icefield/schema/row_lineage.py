"""Row lineage: the unique id of a row in a table of version 3, and the commit that last changed the row.

Spec: "Row Lineage". A value that is stored with a row takes precedence. Without it, the row id is the file's first row
id plus the row's position, and the last change is the commit that added the file. A file without a first row id,
written before the table was of version 3, has neither.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import UnsupportedFeature
from icefield.schema.schema import Schema
from icefield.types.reserved import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID

LINEAGE_IDS = frozenset((ROW_ID.field_id, LAST_UPDATED_SEQUENCE_NUMBER.field_id))


@dataclass(frozen=True, slots=True)
class RowLineage:
    """The values of the row lineage columns that the rows of a file inherit from it."""

    first_row_id: int
    sequence_number: int | None

    def inherited(self, field_id: int, stored: pa.Array, positions: pa.Array) -> pa.Array:
        """A lineage column, from its stored values and, for the row id, the rows' positions in the file."""
        if stored.null_count == 0:
            return stored
        if field_id == ROW_ID.field_id:
            return pc.coalesce(stored, pc.add_checked(positions, self.first_row_id))
        return pc.fill_null(stored, pa.scalar(self.sequence_number, pa.int64()))


def with_lineage(schema: Schema) -> Schema:
    """A table's columns, followed by the two lineage columns.

    Raises ``UnsupportedFeature`` if a column of the table has the name of a lineage column: its values would be lost.
    """
    columns = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
    for column in columns:
        if schema.has_field(column.name):
            raise UnsupportedFeature(
                f"the table has a column '{column.name}', the name under which the lineage of rows is written when "
                "their file is; rename it to change rows",
                field_id=schema.find_field(column.name).field_id,
            )
    return Schema(*schema.fields, *columns, schema_id=schema.schema_id)
