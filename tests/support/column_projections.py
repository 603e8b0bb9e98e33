"""Columns of one file brought to a read schema, and fields as files hold them."""

import pyarrow as pa
from icefield.scan import ColumnProjection
from icefield.schema import Schema, schema_to_arrow
from icefield.types.arrow.types import FIELD_ID_KEY


def field(name, kind, id_=None, nullable=True):
    return pa.field(name, kind, nullable, {FIELD_ID_KEY: str(id_).encode()} if id_ is not None else None)


def project(read, fields, columns, constants=None, **options):
    """Project one batch; ``fields`` are the file's, and only the requested columns are passed on."""
    file_schema = pa.schema(fields)
    projection = ColumnProjection.resolve(Schema(*read), file_schema, constants, **options)
    arrays = []
    for wanted in projection.file_columns:
        place = file_schema.get_field_index(wanted.name)
        arrays.append(prune(columns[place], wanted.type))
    rows = len(columns[0]) if columns else 0
    if arrays:
        batch = pa.RecordBatch.from_arrays(arrays, schema=projection.file_columns)
    else:
        batch = pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))
    result = projection.apply(batch)
    result.validate(full=True)
    assert result.schema.equals(schema_to_arrow(Schema(*read)), check_metadata=True)
    return result


def prune(array, wanted):
    """Return a column as a reader gives it after pruning."""
    if not pa.types.is_struct(wanted):
        return array
    children = [prune(array.field(child.name), child.type) for child in wanted]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)
