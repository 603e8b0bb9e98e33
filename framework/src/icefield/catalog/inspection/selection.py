"""The selected rows and columns of a metadata table."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

import numpy as np
import pyarrow as pa

from icefield.base import compute as pc
from icefield.errors import InvalidArgument
from icefield.expressions import AlwaysTrue, BooleanExpression, as_expression, bind, evaluate, field_ids
from icefield.manifest.columns import struct_array
from icefield.scan.planning.pruning import Mask
from icefield.schema import Schema
from icefield.storage.encrypted_files import STANDARD
from icefield.types import NestedField, StructType
from icefield.types.arrow.types import from_arrow_fields


def without_keys(key_metadata: pa.Array) -> pa.Array:
    """Key metadata as metadata tables show it: of the standard one, which holds the key, the version byte alone."""
    return pc.if_else(pc.starts_with(key_metadata, STANDARD), pa.scalar(STANDARD, key_metadata.type), key_metadata)


class MetadataSelection:
    """A filter and selected columns of a metadata table with the schema ``full``.

    ``schema`` has the selected columns, ``tested`` the columns of the filter, ``read`` both. Structs are reduced to the
    needed fields. ``row_filter`` is bound to the metadata table's columns. Raises ``InvalidExpression`` if the filter
    names an unknown column, ``InvalidArgument`` if the selection does.
    """

    def __init__(
        self,
        full: pa.Schema,
        row_filter: BooleanExpression | str = AlwaysTrue(),  # noqa: B008 -- immutable
        selected_fields: str | Iterable[str] = ("*",),
        case_sensitive: bool = True,
    ) -> None:
        names = (selected_fields,) if isinstance(selected_fields, str) else tuple(selected_fields)
        if not names:
            raise InvalidArgument("selected_fields names no column; ('*',) is all of them")
        expression = as_expression(row_filter)
        self.row_filter: BooleanExpression
        if isinstance(expression, AlwaysTrue) and "*" in names:
            self.row_filter, self.schema, self.tested, self.read = expression, full, pa.schema([]), full
            return
        fields = Schema(*from_arrow_fields(list(full), count(1).__next__))
        self.row_filter = bind(fields, expression, case_sensitive)
        selected = fields.select(*names, case_sensitive=case_sensitive)
        tested = field_ids(self.row_filter)
        self.schema = pa.schema(_pruned(full, selected.fields))
        self.tested = pa.schema(_pruned(full, fields.select_ids(tested).fields))
        kinds = {number: selected.find_field(number).field_type for number in selected.field_ids}
        leaves = {each for each, kind in kinds.items() if not isinstance(kind, StructType) or not kind.fields}
        self.read = pa.schema(_pruned(full, fields.select_ids(leaves | tested).fields))

    @property
    def is_filtered(self) -> bool:
        """Whether there is a filter."""
        return not isinstance(self.row_filter, AlwaysTrue)

    def matches(self, batch: pa.RecordBatch) -> Mask:
        """Which rows match; the batch has at least the columns ``tested``."""
        return np.asarray(evaluate(self.row_filter, batch))

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The matching rows with the selected columns; the batch has at least the columns ``read``."""
        if self.is_filtered:
            batch = batch.filter(pa.array(self.matches(batch)))
        if self.schema is self.read:
            return batch
        arrays = [narrow(batch.column(field.name), field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def narrow(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """A struct reduced to some of its fields, at every depth; any other array unchanged."""
    if not pa.types.is_struct(kind) or array.type == kind:
        return array
    children = [narrow(array.field(array.type.get_field_index(field.name)), field.type) for field in kind]
    if array.null_count == 0:
        return struct_array(children, list(kind), len(array))
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())


def _pruned(fields: Iterable[pa.Field], kept: Iterable[NestedField]) -> list[pa.Field]:
    by_name = {field.name: field for field in kept}
    found = []
    for field in fields:
        wanted = by_name.get(field.name)
        if wanted is None:
            continue
        if pa.types.is_struct(field.type) and isinstance(wanted.field_type, StructType):
            field = field.with_type(pa.struct(_pruned(field.type, wanted.field_type.fields)))
        found.append(field)
    return found
