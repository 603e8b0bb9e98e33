"""What is decoded, vectorized and value by value, against a plain encoder and pyarrow's own arrays."""

import random

import pyarrow as pa
import pytest
from avro_files import by_value, files, open_file, read_file, vectorized_only
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from icefield.abc import ReadRequest

RELAXED = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.spec("AVRO-11", "AVRO-12", "AVRO-13", "AVRO-14", "AVRO-23")
@RELAXED
@given(made=files())
def test_any_file_is_read_value_by_value(made):
    with by_value():
        got = read_file(made.data)
    got.validate(full=True)
    assert got.equals(made.table(got.schema))


@pytest.mark.spec("AVRO-11", "AVRO-12", "AVRO-13", "AVRO-14", "AVRO-23")
@RELAXED
@given(made=files())
def test_any_file_is_read_vectorized_only(made):
    with vectorized_only():
        got = read_file(made.data)
    got.validate(full=True)
    assert got.equals(made.table(got.schema))


def some_of(field: pa.Field, rng: random.Random) -> pa.Field:
    """A field with fewer fields inside it."""
    kind = field.type
    if pa.types.is_struct(kind):
        children = [some_of(kind.field(i), rng) for i in range(kind.num_fields) if rng.random() < 0.6]
        return field.with_type(pa.struct(children))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(some_of(kind.value_field, rng)))
    if pa.types.is_map(kind):
        return field.with_type(pa.map_(kind.key_field, some_of(kind.item_field, rng)))
    return field


def pruned(value, kind: pa.DataType):
    """A value without what the type has not."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: pruned(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind):
        return [pruned(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        return [(key, pruned(item, kind.item_type)) for key, item in value]
    return value


@pytest.mark.spec("AVRO-26", "MAN-25")
@RELAXED
@given(made=files(depth=3), seed=st.integers(0, 1 << 30), stepwise=st.booleans())
def test_any_part_of_the_columns_is_read_in_any_order(made, seed, stepwise):
    rng = random.Random(seed)
    with open_file(made.data) as reader:
        fields = [some_of(field, rng) for field in reader.schema if rng.random() < 0.6]
    rng.shuffle(fields)
    wanted = pa.schema(fields)
    with vectorized_only() if stepwise else by_value():
        got = read_file(made.data, wanted, batch_rows=rng.choice((7, 100_000)))
    assert got.num_rows == len(made.rows)
    for field in wanted:
        values = [pruned(row[field.name], field.type) for row in made.expected]
        assert got.column(field.name).combine_chunks().equals(pa.array(values, field.type))


@RELAXED
@given(made=files(), batch_rows=st.integers(1, 60))
def test_batches_and_positions_cut_the_same_rows(made, batch_rows):
    with open_file(made.data) as reader:
        request = ReadRequest(reader.schema, batch_rows=batch_rows, positions=True)
        batches = list(reader.read(request))
        schema = reader.schema
    assert all(1 <= batch.num_rows <= batch_rows for batch in batches)
    got = pa.Table.from_batches(batches)
    assert got.column("_pos").to_pylist() == list(range(len(made.rows)))
    assert got.drop_columns("_pos").equals(made.table(schema))
