"""Row lineage: what states a row of a table of version 3 from all others, and when it last changed.

Spec: "Row Lineage". A value that is stored with a row counts; where none is, the row's id is the first one of its file
plus its position there, and its last change is the commit that added the file. A file without a first row id, written
before the table was of version 3, states neither.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import UnsupportedFeature
from icefield.schema.schema import Schema
from icefield.types.reserved import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID

LINEAGE_IDS = frozenset((ROW_ID.field_id, LAST_UPDATED_SEQUENCE_NUMBER.field_id))


@dataclass(frozen=True, slots=True)
class RowLineage:
    """What the rows of a file inherit from it."""

    first_row_id: int
    sequence_number: int | None

    def inherited(self, field_id: int, stored: pa.Array, positions: pa.Array) -> pa.Array:
        """A column of lineage, from what is stored of it and, for the id, the rows' positions in the file."""
        if stored.null_count == 0:
            return stored
        if field_id == ROW_ID.field_id:
            return pc.coalesce(stored, pc.add_checked(positions, self.first_row_id))
        return pc.fill_null(stored, pa.scalar(self.sequence_number, pa.int64()))


def with_lineage(schema: Schema) -> Schema:
    """A table's columns and after them the two of lineage.

    Raises ``UnsupportedFeature`` where a column of the table has the name of one: their values would be lost.
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
