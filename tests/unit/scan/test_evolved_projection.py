"""Old rows are right after any evolution of any schema."""

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from icefield.scan import ColumnProjection
from icefield.schema import Schema
from icefield.types import IntegerType, ListType, LongType, MapType, NestedField, StringType, StructType
from icefield.types.arrow.types import to_arrow_field

names = st.sampled_from("abcdefgh")


@st.composite
def struct_types(draw, ids, depth):
    fields = []
    for number in range(draw(st.integers(1, 3))):
        fields.append(NestedField(next(ids), f"f{number}", draw(kinds(ids, depth))))
    return StructType(*fields)


def kinds(ids, depth):
    leaf = st.sampled_from([IntegerType(), LongType(), StringType()])
    if depth == 0:
        return leaf
    return st.one_of(
        leaf,
        struct_types(ids, depth - 1),
        kinds(ids, depth - 1).map(lambda kind: ListType(next(ids), kind)),
        kinds(ids, depth - 1).map(lambda kind: MapType(next(ids), StringType(), next(ids), kind)),
    )


def values(kind):
    match kind:
        case StructType():
            return st.none() | st.fixed_dictionaries({child.name: values(child.field_type) for child in kind.fields})
        case ListType():
            return st.none() | st.lists(values(kind.element_type), max_size=3)
        case MapType():
            return st.none() | st.lists(st.tuples(st.text(max_size=2), values(kind.value_type)), max_size=3)
        case StringType():
            return st.none() | st.text(max_size=3)
    return st.none() | st.integers(-5, 5)


class Renamer:
    """Evolves a type by renaming, dropping, reordering and adding fields, and computes the new form of a value."""

    def __init__(self, draw, ids):
        self.draw = draw
        self.ids = ids

    def struct(self, kind):
        kept = self.draw(st.permutations([child for child in kind.fields if self.draw(st.integers(0, 3))]))
        fields, moves = [], []
        for child in kept:
            evolved, move = self.kind(child.field_type)
            name = f"{child.name}_{self.draw(names)}"
            fields.append(NestedField(child.field_id, name, evolved))
            moves.append((child.name, name, move))
        added = NestedField(next(self.ids), "added", "int", initial_default=self.draw(st.none() | st.just(42)))
        fields.insert(self.draw(st.integers(0, len(fields))), added)

        def move(value):
            if value is None:
                return None
            moved = {new: step(value[old]) for old, new, step in moves} | {"added": added.initial_default}
            return {each.name: moved[each.name] for each in fields}

        return StructType(*fields), move

    def kind(self, kind):
        match kind:
            case StructType():
                return self.struct(kind)
            case ListType():
                element, move = self.kind(kind.element_type)
                return ListType(kind.element_id, element), lambda v: None if v is None else [move(e) for e in v]
            case MapType():
                value, move = self.kind(kind.value_type)
                evolved = MapType(kind.key_id, kind.key_type, kind.value_id, value)
                return evolved, lambda v: None if v is None else [(k, move(e)) for k, e in v]
            case IntegerType():
                return self.draw(st.sampled_from([IntegerType(), LongType()])), lambda v: v
        return kind, lambda v: v


@pytest.mark.slow
@pytest.mark.spec("PRJ-01", "PRJ-14", "PRJ-16", "SCH-06", "SCH-07", "SCH-10", "DEF-10")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_any_evolution_of_any_schema_reads_old_rows_right(data):
    ids = iter(range(1, 10_000))
    held = data.draw(struct_types(ids, 3))
    row = st.fixed_dictionaries({child.name: values(child.field_type) for child in held.fields})
    rows = data.draw(st.lists(row, min_size=1, max_size=4))
    read, move = Renamer(data.draw, ids).struct(held)
    file_schema = pa.schema([to_arrow_field(child) for child in held.fields])
    projection = ColumnProjection.resolve(Schema(*read.fields), file_schema)
    whole = pa.RecordBatch.from_pylist(rows, schema=file_schema)
    arrays = [carve(whole.column(wanted.name), wanted.type) for wanted in projection.file_columns]
    if not arrays:
        return
    batch = pa.RecordBatch.from_arrays(arrays, schema=projection.file_columns)
    start = data.draw(st.integers(0, len(rows) - 1))
    result = projection.apply(batch.slice(start))
    result.validate(full=True)
    assert result.to_pylist() == [move(row) for row in rows[start:]]


def carve(array, wanted):
    """A pruned column, built anew from Python values: slow, and independent of the code under test."""
    return pa.array([carve_value(value, wanted) for value in array.to_pylist()], wanted)


def carve_value(value, wanted):
    if value is None:
        return None
    if pa.types.is_struct(wanted):
        return {child.name: carve_value(value[child.name], child.type) for child in wanted}
    if pa.types.is_map(wanted):
        return [(key, carve_value(item, wanted.item_type)) for key, item in value]
    if pa.types.is_list(wanted):
        return [carve_value(item, wanted.value_type) for item in value]
    return value
