"""Variants that are written shredded: what is in which column, and that they come back as they were."""

import struct
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from icefield.errors import IcefieldError, InvalidArgument
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import retype
from icefield.types import ListType, MapType, NestedField, StructType, VariantType
from icefield_parquet.schema import without_extensions
from icefield_parquet.variants import variant_to_python
from icefield_parquet.variants.shredded_types import shredded_types
from icefield_parquet.variants.shredding import shredded
from icefield_parquet.variants.unshredding import unshredded
from outcomes import counted_outcomes
from parquet_files import read_as, write, write_rows
from parquet_footer import elements
from variant_bytes import PRIMITIVES, Leaf, decimal, leaf, variant

SHREDDED = {"write.parquet.shred-variants": "true"}
V = Schema(NestedField(1, "v", VariantType()))
ARROW = schema_to_arrow(V)


def array_of(values):
    """Variants of Python values; a null where ``...`` stands."""
    return pa.array([None if value is ... else variant(value) for value in values], ARROW.field("v").type)


def typed_value(values, rows=100):
    """The type that variants are shredded into."""
    types = dict(shredded_types(pa.table([array_of(values)], schema=ARROW), V.fields, rows))
    return types[1].field("typed_value").type if types else None


def columns(values):
    """The typed groups of values, as Python rows."""
    array = array_of(values)
    ((_, wanted),) = shredded_types(pa.table([array], schema=ARROW), V.fields, 1_000)
    found = shredded(array, wanted)
    found.validate(full=True)
    return [row and {name: part for name, part in row.items() if name != "metadata"} for row in found.to_pylist()]


def group(kind):
    return pa.struct([pa.field("value", pa.binary()), pa.field("typed_value", kind)])


def fields(**kinds):
    """The type of an object whose fields have columns of those types."""
    return pa.struct([pa.field(name, group(kind), nullable=False) for name, kind in kinds.items()])


def items(kind):
    return pa.list_(pa.field("element", group(kind), nullable=False))


def written(values, **properties):
    named = {f"write.parquet.{name.replace('_', '-')}": str(value) for name, value in properties.items()}
    data, _ = write(V, pa.table([array_of(values)], schema=ARROW), properties={**SHREDDED, **named})
    return data


def shown(array):
    return [... if each is None else variant_to_python(each["metadata"], each["value"]) for each in array.to_pylist()]


def paths(data):
    schema = pq.ParquetFile(pa.BufferReader(data)).schema
    return [schema.column(at).path for at in range(len(schema))]


STORED = {
    "true": ("boolean", None),
    "false": ("boolean", None),
    "int8": ("int32", "INTEGER(8,true)"),
    "int16": ("int32", "INTEGER(16,true)"),
    "int32": ("int32", None),
    "int64": ("int64", None),
    "double": ("double", None),
    "float": ("float", None),
    "decimal4": ("int32", "DECIMAL(3,2)"),
    "decimal8": ("int64", "DECIMAL(18,4)"),
    "decimal16": ("fixed_len_byte_array", "DECIMAL(31,2)"),
    "date": ("int32", "DATE"),
    "timestamptz": ("int64", "TIMESTAMP(true,MICROS)"),
    "timestamp": ("int64", "TIMESTAMP(false,MICROS)"),
    "binary": ("binary", None),
    "string": ("binary", "STRING"),
    "short string": ("binary", "STRING"),
    "time": ("int64", "TIME(false,MICROS)"),
    "timestamptz_ns": ("int64", "TIMESTAMP(true,NANOS)"),
    "timestamp_ns": ("int64", "TIMESTAMP(false,NANOS)"),
    "uuid": ("fixed_len_byte_array", "UUID"),
}


@pytest.mark.spec("PARQ-13")
@pytest.mark.parametrize("name", PRIMITIVES)
def test_each_primitive_has_a_column_of_the_type_that_the_format_names(name):
    value, (physical, logical) = PRIMITIVES[name], STORED[name]
    values = [value, "another", None, ..., value, {"a": 1}] if physical != "binary" else [value, 7, None, ..., value]
    values[1:1] = [value, value]
    data = written(values)
    variant_, *parts = elements(data)
    assert (variant_.name, variant_.repetition, variant_.logical, variant_.field_id) == (
        "v",
        "optional",
        "VARIANT(1)",
        1,
    )
    assert [(part.name, part.repetition, part.field_id) for part in parts] == [
        ("metadata", "required", None), ("value", "optional", None), ("typed_value", "optional", None)
    ]  # fmt: skip
    assert (parts[2].physical, parts[2].logical) == (physical, logical)
    held = [row["typed_value"] is not None for row in columns(values) if row is not None]
    assert held == [isinstance(each, Leaf) for each in values if each is not ...]
    assert repr(shown(read_as(V, data)["v"])) == repr(shown(array_of(values)))


@pytest.mark.spec("PARQ-13")
class TestColumns:
    """What is in which column, after the examples of the format's text."""

    def test_an_array_of_strings_with_a_null_and_a_null_for_an_array(self):
        assert columns([["comedy", "drama"], ["horror", None], ["comedy", "drama", "romance"], None]) == [
            {"value": None, "typed_value": [{"value": None, "typed_value": text} for text in ("comedy", "drama")]},
            {"value": None, "typed_value": [
                {"value": None, "typed_value": "horror"}, {"value": b"\0", "typed_value": None}
            ]},
            {"value": None, "typed_value": [{"value": None, "typed_value": t} for t in ("comedy", "drama", "romance")]},
            {"value": b"\0", "typed_value": None},
        ]  # fmt: skip

    def test_objects_whole_in_part_without_fields_and_no_objects(self):
        nothing = {"value": None, "typed_value": None}

        def typed(kind=nothing, at=nothing, rest=None):
            return {"value": rest, "typed_value": {"at": at, "kind": kind}}

        def held(value):
            return {"value": None, "typed_value": value}

        rows = [{"kind": f"k{n}", "at": 1_000 + n} for n in range(20)]
        found = columns([
            *rows, {"kind": "login", "at": 1, "email": "u@example.com"}, {"error": "bad"}, "bad", {"at": 2}, {},
            {"kind": None, "at": 3}, {"kind": "noop", "at": "2024"}, None, ...,
        ])  # fmt: skip
        assert found[:20] == [typed(held(row["kind"]), held(row["at"])) for row in rows]
        email, error = b"\2\1\1\0\x0e\x35u@example.com", b"\2\1\0\0\4\x0dbad"
        assert found[20:] == [
            typed(held("login"), held(1), email), typed(rest=error), {"value": b"\x0dbad", "typed_value": None},
            typed(at=held(2)), typed(), typed({"value": b"\0", "typed_value": None}, held(3)),
            typed(held("noop"), {"value": b"\x112024", "typed_value": None}), {"value": b"\0", "typed_value": None},
            None,
        ]  # fmt: skip

    def test_a_time_beyond_a_day_and_a_string_that_is_not_utf8_stay_encoded(self):
        late, broken = leaf(17, struct.pack("<q", 86_400 * 10**6)), Leaf(b"\x09\xff\xfe")
        for good, bad in ((leaf(17, bytes(8)), late), ("ok", broken)):
            assert [row["value"] for row in columns([good, bad, good])] == [None, bad.data, None]
            read_as(V, written([good, bad]))

    def test_decimals_of_another_scale_or_with_more_digits_stay_encoded(self):
        first = [decimal(8, 15, 1), decimal(9, 99, 1)]
        others = [decimal(8, 150, 2), decimal(10, 100, 1), decimal(10, 10**30, 1)]
        ((_, wanted),) = shredded_types(pa.table([array_of(first)], schema=ARROW), V.fields, 100)
        assert wanted.field("typed_value").type == pa.decimal128(2, 1)
        found = shredded(array_of(first + others), wanted).to_pylist()
        assert [row["value"] for row in found] == [None, None, *(each.data for each in others)]


class TestTypes:
    """Which type is found: that of most values, fields that are rare left out."""

    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            ([1, 2, "a"], pa.int8()),
            (["a", "b", 1], pa.string()),
            ([1, 300, 70_000, "a", "b"], pa.int32()),
            ([1, 2**40], pa.int64()),
            ([1, "a"], pa.string()),
            ([None, None, 1.5], pa.float64()),
            ([None, ...], None),
            ([], None),
            ([[], []], None),
            ([{}, {}], None),
            ([{"a": None}], None),
            ([True, False, 1], pa.bool_()),
            ([[1], [], [300, "a"]], items(pa.int16())),
            ([{"b": 1, "a": [{"x": "t"}]}], fields(a=items(fields(x=pa.string())), b=pa.int8())),
            ([{"a": {}}, {"b": 1}], fields(b=pa.int8())),
            ([decimal(8, 12345, 2), decimal(8, 7, 3), decimal(10, 1, 2)], pa.decimal128(5, 2)),
            ([decimal(8, 1, 5)], pa.decimal128(5, 5)),
        ],
    )
    def test_the_type_of_most_values_is_taken(self, values, expected):
        assert typed_value(values) == expected

    def test_a_field_gets_a_column_if_a_tenth_of_the_rows_has_it(self):
        rows = [{"a": 1, **({"b": 1} if n < 10 else {}), **({"c": 1} if n < 9 else {})} for n in range(100)]
        assert typed_value(rows) == fields(a=pa.int8(), b=pa.int8())

    def test_the_commonest_three_hundred_fields_of_an_object_get_columns(self):
        rows = [{f"f{n:03}": 1 for n in range(400)}, {f"f{n:03}": 1 for n in range(50, 400)}]
        assert [each.name for each in typed_value(rows)] == [f"f{n:03}" for n in range(50, 350)]

    def test_of_names_that_differ_in_case_only_the_commonest_has_a_column(self):
        rows = [{"a": 1, "A": "x", "": 1, "b\0": 2}, {"A": "y", "b": True}]
        assert typed_value(rows) == fields(A=pa.string(), b=pa.bool_())
        assert shown(read_as(V, written(rows))["v"]) == rows

    def test_no_more_than_a_thousand_columns_come_of_a_variant(self):
        rows = [{f"a{n}": {f"b{m}": 1 for m in range(100)} for n in range(30)}]
        assert sum(len(each.type.field("typed_value").type) for each in typed_value(rows)) == 1_000

    def test_columns_are_nested_no_deeper_than_fifty_levels(self):
        deep = 1
        for _ in range(70):
            deep = {"a": deep}
        assert typed_value([deep]) is None
        rows = [{"b": 1, "a": deep}]
        assert typed_value(rows) == fields(b=pa.int8())
        assert shown(read_as(V, written(rows))["v"]) == rows

    def test_so_many_first_rows_are_looked_at_as_the_property_says(self):
        values = [1, 2, 3, "a", "b", "c", "d"]
        by_default, by_three = written(values), written(values, variant_inference_buffer_size=3)
        assert [elements(data)[3].logical for data in (by_default, by_three)] == ["STRING", "INTEGER(8,true)"]
        assert shown(read_as(V, by_default)["v"]) == shown(read_as(V, by_three)["v"]) == values


EVERYWHERE = Schema(
    NestedField(1, "v", VariantType(), required=True),
    NestedField(2, "s", StructType(NestedField(3, "w", VariantType(), required=True), NestedField(4, "n", "unknown"))),
    NestedField(5, "l", ListType(6, VariantType())),
    NestedField(7, "m", MapType(8, "string", 9, VariantType())),
    NestedField(10, "t", "time"),
)


@pytest.mark.spec("PARQ-13")
def test_variants_in_structs_are_shredded_and_those_in_lists_and_maps_are_not():
    one, other = variant({"a": 1}), variant({"a": 2, "b": "x"})
    rows = [
        {"v": one, "s": {"w": other, "n": None}, "l": [one, None], "m": [("k", other)], "t": None},
        {"v": other, "s": None, "l": None, "m": None, "t": None},
    ]
    data, metrics = write_rows(EVERYWHERE, rows, properties=SHREDDED)
    found = paths(data)
    assert [path for path in found if path.endswith("typed_value")] == [
        "v.typed_value.a.typed_value", "v.typed_value.b.typed_value",
        "s.w.typed_value.a.typed_value", "s.w.typed_value.b.typed_value",
    ]  # fmt: skip
    assert {each.field_id for each in elements(data) if each.field_id} == {1, 2, 3, 5, 6, 7, 8, 9, 10}
    assert read_as(EVERYWHERE, data).to_pylist() == rows
    assert set(metrics.metrics.column_sizes) == {1, 3, 6, 8, 9, 10}
    assert metrics.metrics.value_counts[1] == 2


def test_what_is_below_a_null_struct_is_not_looked_at():
    kind = schema_to_arrow(EVERYWHERE).field("s").type
    inner = pa.StructArray.from_arrays(
        [pa.array([b"\1\0\0", b""]), pa.array([b"\x0c\5", b""])], fields=list(kind[0].type)
    )
    struct_ = pa.StructArray.from_arrays([inner, pa.nulls(2)], fields=list(kind), mask=pa.array([False, True]))
    schema = Schema(*(field for field in EVERYWHERE.fields if field.name == "s"))
    data, _ = write(schema, pa.table([struct_], schema=schema_to_arrow(schema)), properties=SHREDDED)
    assert "s.w.typed_value" in paths(data)
    assert [row["s"] and shown(pa.array([row["s"]["w"]])) for row in read_as(schema, data).to_pylist()] == [[5], None]


def test_without_the_property_nothing_is_shredded():
    table = pa.table([array_of([{"a": 1}])], schema=ARROW)
    for properties in ({}, {"write.parquet.shred-variants": "false"}):
        assert paths(write(V, table, properties=properties)[0]) == ["v.metadata", "v.value"]


def test_typed_columns_have_statistics_unless_these_are_turned_off():
    rows = [{"a": n, "b": [str(n)]} for n in range(9)]
    for properties, expected in (({}, True), ({"stats_enabled.column.v": "false"}, False)):
        group_ = pq.ParquetFile(pa.BufferReader(written(rows, **properties))).metadata.row_group(0)
        chunks = {group_.column(at).path_in_schema: group_.column(at) for at in range(group_.num_columns)}
        assert not chunks.pop("v.metadata").is_stats_set
        assert {chunk.is_stats_set for chunk in chunks.values()} == {expected}
        if expected:
            typed = chunks["v.typed_value.a.typed_value"].statistics
            assert (typed.min, typed.max, chunks["v.value"].statistics.null_count) == (0, 8, 9)


def test_row_groups_and_batches_of_one_file_have_one_type():
    values = [{"a": n} for n in range(500)] + [{"a": str(n), "z": n} for n in range(500)] + [...] * 3
    table = pa.table([array_of(values)], schema=ARROW)
    for batch_rows in (70, None):
        properties = {**SHREDDED, "write.parquet.row-group-size-bytes": "5000"}
        data, _ = write(V, table, batch_rows=batch_rows, properties=properties)
        assert pq.ParquetFile(pa.BufferReader(data)).metadata.num_row_groups > 2
        assert "v.typed_value.z.value" not in paths(data)
        assert shown(read_as(V, data)["v"]) == values


def test_bounds_of_the_columns_behind_a_shredded_one_are_theirs():
    schema = Schema(NestedField(1, "v", VariantType()), NestedField(2, "t", "string"), NestedField(3, "n", "int"))
    rows = [{"v": variant({"a": "zz", "b": n}), "t": f"t{n}", "n": n} for n in range(9)]
    _, found = write_rows(schema, rows, properties=SHREDDED)
    assert (found.metrics.lower_bounds, found.metrics.upper_bounds) == ({2: "t0", 3: 0}, {2: "t8", 3: 8})


TEXTS = st.text(max_size=3) | st.text(st.just("x"), min_size=60, max_size=70)
LEAVES = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.integers(-200, 200) | st.floats(allow_nan=False)
    | TEXTS | st.sampled_from(list(PRIMITIVES.values()))
    | st.builds(lambda n, scale: decimal(10, n, scale), st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
    | st.builds(lambda n, scale: decimal(8, n, scale), st.integers(-(10**9) + 1, 10**9 - 1), st.integers(0, 9))
)  # fmt: skip
NAMES = st.sampled_from(["a", "b", "c", "A", "", "a.b", "ü", "typed_value", "value", "list", "element", "n" * 300])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=10
)


@pytest.mark.spec("PARQ-13")
@settings(max_examples=150, deadline=None)
@given(st.lists(VALUES | st.just(...), max_size=8), st.integers(1, 8))
def test_any_variants_come_back_from_a_shredded_file_as_they_were(values, rows):
    data = written(values, variant_inference_buffer_size=rows)
    assert repr(shown(read_as(V, data)["v"])) == repr(shown(array_of(values)))


@settings(max_examples=150, deadline=None)
@given(st.lists(VALUES | st.just(...), min_size=1, max_size=4), st.integers(0, 3))
def test_variants_of_a_slice_are_shredded_as_they_are(values, start):
    array = array_of(values)
    for _, wanted in shredded_types(pa.table([array], schema=ARROW), V.fields, 100):
        found = shredded(array.slice(start), wanted)
        found.validate(full=True)
        plain = retype(found, without_extensions(pa.schema([pa.field("v", wanted)])).field("v").type)
        assert repr(shown(unshredded(plain))) == repr(shown(array.slice(start)))


def ordered(value):
    """A value as a string, its fields in the order of their names: damaged names may have come in another one."""
    if isinstance(value, dict):
        return repr(sorted((name, ordered(part)) for name, part in value.items()))
    return repr([ordered(part) for part in value]) if isinstance(value, list) else repr(value)


outcomes = counted_outcomes()


class TestDamage:
    @pytest.mark.slow
    @settings(max_examples=300, deadline=None)
    @given(VALUES, st.binary(max_size=12), st.booleans(), st.integers(0, 40))
    @example(1, b"", False, 0)
    @example(1, b"\xff", True, 0)
    def test_damage_is_an_error_of_its_own_kind_or_no_harm(self, outcomes, value, damage, of_names, at):
        held = variant(value)
        part = "metadata" if of_names else "value"
        held[part] = held[part][:at] + damage + held[part][at + len(damage) :]
        array = pa.array([held], ARROW.field("v").type)
        try:
            before = ordered(shown(array))
        except IcefieldError:
            before = None
        with outcomes.of("damaged variants", IcefieldError):
            data, _ = write(V, pa.table([array], schema=ARROW), properties=SHREDDED)
            after = ordered(shown(read_as(V, data)["v"]))
            assert before is None or after == before

    def test_a_damaged_variant_is_refused_with_its_column(self):
        table = pa.table([pa.array([{"metadata": b"\1\0\0", "value": b"\x14\1"}], ARROW.field("v").type)], schema=ARROW)
        with pytest.raises(InvalidArgument, match=r"'v'.*too early"):
            write(V, table, properties=SHREDDED)

    def test_elements_that_share_their_bytes_are_refused_before_they_take_memory(self):
        value, count = b"\x0c\1", 250
        for _ in range(5):
            offsets = bytes(3) * count + len(value).to_bytes(3, "little")
            value = bytes([3 | 2 << 2, count]) + offsets + value
        with pytest.raises(InvalidArgument, match="larger than the variant"):
            typed_value([Leaf(value)])


def test_no_python_object_is_made_for_a_row(monkeypatch):
    """A million fields are shredded by calls whose number hangs on the levels alone."""
    values = array_of([{"a": n, "b": f"t{n}", "c": {"d": 1.5}, "z": None} for n in range(200)])
    many = pa.concat_arrays([values] * 100)
    ((_, wanted),) = shredded_types(pa.table([values], schema=ARROW), V.fields, 100)
    counts = []
    for array in (values, many):
        calls = 0

        def count(frame, event, argument):
            nonlocal calls
            calls += 1

        sys.setprofile(count)
        try:
            shredded(array, wanted)
        finally:
            sys.setprofile(None)
        counts.append(calls)
    assert counts[1] < counts[0] * 1.5
