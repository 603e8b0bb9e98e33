"""Files damaged by the hundred, read in a process of their own."""

import itertools

import pyarrow as pa
import pytest
from avro_files import write_file
from format_strategies import numbered
from fuzzing import fuzz
from icefield.schema import Schema, schema_to_arrow
from icefield.testing.format_data import EDGES, NESTED, NESTED_ROWS, flat_table
from icefield.types import NestedField, StructType

CODECS = ("uncompressed", "gzip", "snappy", "zstd", "bzip2", "xz")


def whole_files():
    """Files of every type, shape and codec, with several blocks each."""
    schema, table = flat_table(1_200)
    files = {f"flat, {codec}": file(schema, table, codec) for codec in CODECS}
    fields = (NestedField(0, name, kind) for name, kind in NESTED.items())
    kind = numbered(StructType(*fields), itertools.count(1).__next__)
    rows = [{name: NESTED_ROWS[name][number % len(NESTED_ROWS[name])] for name in NESTED} for number in range(300)]
    nested = Schema(*kind.fields)
    schema = Schema(*(NestedField(at, f"c{at}", kind) for at, kind in enumerate(EDGES, start=1)))
    arrow = schema_to_arrow(schema)
    columns = [[values[at % len(values)] if at % 5 else None for at in range(250)] for values in EDGES.values()]
    arrays = [array(column, field.type) for column, field in zip(columns, arrow, strict=True)]
    for codec in ("uncompressed", "zstd"):
        files[f"nested, {codec}"] = file(nested, pa.Table.from_pylist(rows, schema=schema_to_arrow(nested)), codec)
        files[f"types, {codec}"] = file(schema, pa.Table.from_arrays(arrays, schema=arrow), codec)
    return files


def array(values, kind):
    numbers = [value.value if isinstance(value, pa.Scalar) else value for value in values]
    return pa.array(numbers, kind)


def file(schema, table, codec):
    properties = {"write.avro.compression-codec": codec, "avro.block-size": "3000"}
    return write_file(schema, table.to_batches(), properties)


@pytest.mark.counted
@pytest.mark.slow
def test_damaged_files_give_rows_or_one_typed_error_and_never_end_the_process():
    outcome = fuzz("icefield_avro.avro_format:AvroFormat", whole_files())
    assert outcome.counts["rows"] > 20
    assert outcome.counts["InvalidFile"] > 200
    assert outcome.counts.keys() <= {"rows", "InvalidFile", "UnsupportedFeature"}
    assert outcome.memory < 2 << 30
