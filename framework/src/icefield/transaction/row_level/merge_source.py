"""The source of a merge: rows in memory, and their keys in the types of the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count

import pyarrow as pa

from icefield.errors import InvalidArgument
from icefield.schema import Schema
from icefield.transaction.row_level.edits import Ints
from icefield.transaction.row_level.key_join import Keys
from icefield.transaction.rows import conformed
from icefield.types import NestedField, StructType
from icefield.types.arrow.types import from_arrow_fields


class MergeSource:
    """The rows that are merged into a table. Conditions and values see them as a struct named ``name``."""

    def __init__(self, rows: pa.Table, on: Mapping[str, str], schema: Schema, name: str) -> None:
        """``on`` maps key columns of the table to columns of the source. Raises ``InvalidArgument``."""
        self.name, self.on = name, dict(on)
        self.rows = rows.combine_chunks()
        columns = rows.column_names
        twice = _twice(columns)
        if twice:
            raise InvalidArgument(f"the source has two columns of the name '{twice[0]}'", column=twice[0])
        known = frozenset(columns)
        missing = [own for own in self.on.values() if own not in known]
        if missing:
            raise InvalidArgument(f"the source has no column '{missing[0]}'; it has {', '.join(columns)}")
        fields = [schema.find_field((each,)) for each in self.on]
        # A null equals nothing, so it is no error in the key of a required column.
        optional = Schema(*(NestedField(each.field_id, each.name, each.field_type) for each in fields))
        keys = rows.select(list(self.on.values())).rename_columns(list(self.on))
        self.keys = Keys(conformed(optional, keys), list(self.on))
        structs = [pa.StructArray.from_arrays(each.columns, fields=list(each.schema)) for each in _batches(self.rows)]
        self._struct = pa.concat_arrays(structs)

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def column_names(self) -> list[str]:
        """The names of the source's columns; a key column has the name of its column in the table."""
        own = {source: table for table, source in self.on.items()}
        return [own.get(name, name) for name in self.rows.column_names]

    def named(self) -> pa.Table:
        """The rows under ``column_names``. Raises ``InvalidArgument`` if two columns would get the same name."""
        names = self.column_names
        twice = _twice(names)
        if twice:
            raise InvalidArgument(f"the source has '{twice[0]}' next to the column that is the key '{twice[0]}'")
        return self.rows.rename_columns(names)

    def seen_schema(self, schema: Schema) -> Schema:
        """The table's columns and the source. Raises ``InvalidArgument`` if a column has the source's name."""
        if schema.has_field((self.name,)):
            raise InvalidArgument(
                f"the table has a column '{self.name}', the name by which conditions and values see the source; "
                "choose another one by source_name",
                column=self.name,
            )
        numbers = count(max(schema.highest_field_id, 0) + 1)
        id_ = next(numbers)
        fields = from_arrow_fields(list(self.rows.schema), numbers.__next__)
        return Schema(*schema.fields, NestedField(id_, self.name, StructType(*fields)))

    def joined(self, rows: pa.RecordBatch, given: Ints) -> pa.RecordBatch:
        """Rows of the table, each with a row of the source."""
        return rows.append_column(self.name, self._struct.take(pa.array(given)))

    def alone(self, given: Ints) -> pa.RecordBatch:
        """Rows of the source without rows of the table."""
        return pa.RecordBatch.from_arrays([self._struct.take(pa.array(given))], names=[self.name])


def _twice(names: Sequence[str]) -> list[str]:
    """The names that occur more than once, sorted."""
    return sorted(name for name, times in Counter(names).items() if times > 1)


def _batches(rows: pa.Table) -> Sequence[pa.RecordBatch]:
    return rows.to_batches() or [pa.RecordBatch.from_pylist([], schema=rows.schema)]
