"""Shredded variants: any value under any shredding comes together again, and damage is one kind of error."""

import struct

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from icefield.errors import IcefieldError, InvalidArgument, InvalidFile, UnsupportedFeature
from icefield.toolkit import VARIANT_ARROW
from icefield_parquet.variants.decoding import variant_names, variant_to_python
from icefield_parquet.variants.parts import encode_array, encode_object, object_fields
from icefield_parquet.variants.unshredding import unshredded
from icefield_parquet.variants.whole import stored_columns, with_whole_variants
from outcomes import counted_outcomes

NAMES = ("a", "b", "c", "d", "long-name-é")


def metadata_of(names):
    encoded = [name.encode() for name in names]
    ends = [0]
    for name in encoded:
        ends.append(ends[-1] + len(name))
    offsets = b"".join(end.to_bytes(1, "little") for end in ends)
    return bytes([1, len(names)]) + offsets + b"".join(encoded)


METADATA = metadata_of(NAMES)
IDS = {name: number for number, name in enumerate(NAMES)}
LEAVES = {
    "int": (pa.int32(), int, lambda v: b"\x14" + struct.pack("<i", v)),
    "str": (pa.string(), str, lambda v: b"\x40" + struct.pack("<I", len(v.encode())) + v.encode()),
    "bool": (pa.bool_(), bool, lambda v: b"\x04" if v else b"\x08"),
    "float": (pa.float64(), float, lambda v: b"\x1c" + struct.pack("<d", v)),
}


def encoded(value):
    """A value as a variant that is not shredded."""
    if value is None:
        return b"\0"
    if isinstance(value, list):
        return encode_array([encoded(item) for item in value])
    if isinstance(value, dict):
        return encode_object({IDS[name]: encoded(item) for name, item in value.items()}, IDS)
    return next(encode(value) for _, kind, encode in LEAVES.values() if type(value) is kind)


def group(kind):
    """The Arrow type of the group that holds a shredded value; None stands for no typed column."""
    fields = [pa.field("value", pa.binary())]
    if kind is not None:
        fields.append(pa.field("typed_value", typed(kind)))
    return pa.struct(fields)


def typed(kind):
    match kind:
        case ("list", inner):
            return pa.list_(group(inner))
        case ("object", fields):
            return pa.struct([pa.field(name, group(inner)) for name, inner in fields])
    return LEAVES[kind][0]


def shredded(value, kind):
    """A value as its group holds it."""
    match kind:
        case ("list", inner) if isinstance(value, list):
            return {"value": None, "typed_value": [shredded(item, inner) for item in value]}
        case ("object", fields) if isinstance(value, dict):
            names = {name for name, _ in fields}
            rest = {name: item for name, item in value.items() if name not in names}
            parts = {name: shredded(value[name], inner) if name in value else None for name, inner in fields}
            parts = {name: part or dict.fromkeys(("value", "typed_value")) for name, part in parts.items()}
            return {"value": encoded(rest) if rest else None, "typed_value": parts}
        case str() if type(value) is LEAVES[kind][1]:
            return {"value": None, "typed_value": value}
    return {"value": encoded(value), "typed_value": None}


leaves = st.none() | st.booleans() | st.integers(-(2**31), 2**31 - 1) | st.text(max_size=3) | st.floats(allow_nan=False)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=8,
)
kinds = st.recursive(
    st.sampled_from([None, *LEAVES]),
    lambda inner: (
        st.tuples(st.just("list"), inner)
        | st.tuples(
            st.just("object"),
            st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=3).map(lambda held: list(held.items())),
        )
    ),
    max_leaves=5,
).filter(lambda kind: kind is not None)


def column(rows, kind):
    arrow = pa.struct([pa.field("metadata", pa.binary()), *group(kind)])
    made = [None if row is None else {"metadata": METADATA, **shredded(row[0], kind)} for row in rows]
    return pa.array(made, arrow)


@pytest.mark.spec("PARQ-13")
@settings(max_examples=300, deadline=None)
@given(st.lists(st.none() | st.tuples(values), max_size=4), kinds, st.integers(0, 2))
def test_any_value_under_any_shredding_comes_together_again(rows, kind, start):
    found = unshredded(column(rows, kind).slice(start))
    found.validate(full=True)
    shown = [each and [variant_to_python(each["metadata"], each["value"])] for each in found.to_pylist()]
    assert shown == [None if row is None else [row[0]] for row in rows[start:]]
    for row, each in zip(rows[start:], found.to_pylist(), strict=True):
        assert row is None or len(each["value"]) <= len(encoded(row[0])), "strings may be shorter"


outcomes = counted_outcomes()


@settings(max_examples=300, deadline=None)
@given(st.tuples(values), kinds, st.binary(max_size=12), st.booleans(), st.integers(0, 40))
@example((1,), None, b"", False, 0)
@example((1,), None, b"\xff", True, 0)
def test_damage_is_an_error_of_its_own_kind(outcomes, row, kind, damage, of_names, at):
    held = {"metadata": METADATA, **shredded(row[0], kind)}
    part = "metadata" if of_names else "value"
    whole = held[part] or b""
    held[part] = whole[:at] + damage + whole[at + len(damage) :]
    arrow = pa.struct([pa.field("metadata", pa.binary()), *group(kind)])
    with outcomes.of("damaged rows", IcefieldError):
        (found,) = unshredded(pa.array([held], arrow)).to_pylist()
        variant_to_python(found["metadata"], found["value"])


def test_fields_that_share_their_bytes_are_refused():
    long = b"\x40" + struct.pack("<I", 50_000) + b"x" * 50_000
    count = 3_000
    ids = b"".join(number.to_bytes(2, "little") for number in range(count))
    offsets = bytes(3) * count + len(long).to_bytes(3, "little")
    value = bytes([2 | (2 | 1 << 2 | 1 << 4) << 2]) + struct.pack("<I", count) + ids + offsets + long
    with pytest.raises(InvalidArgument):
        object_fields(value)


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 255, 256, 70_000])
def test_objects_and_arrays_of_any_size_are_decoded(count):
    names = [f"k{number:05}" for number in range(count)]
    width = 3
    ends = b"".join((6 * at).to_bytes(width, "little") for at in range(count + 1))
    metadata = bytes([1 | width - 1 << 6]) + count.to_bytes(width, "little") + ends + "".join(names).encode()
    assert variant_names(metadata) == names
    ids = {name: number for number, name in enumerate(names)}
    value = encode_object(dict.fromkeys(range(count), b"\x0c\x07"), ids)
    assert variant_to_python(metadata, value) == dict.fromkeys(names, 7)
    assert object_fields(value) == dict.fromkeys(range(count), b"\x0c\x07")
    assert variant_to_python(metadata, encode_array([b"\x0c\x07"] * count)) == [7] * count


def test_fields_come_in_the_order_of_their_names_whatever_their_ids():
    ids = {"z": 0, "a": 1, "m": 2}
    value = encode_object({0: b"\x04", 1: b"\x08", 2: b"\0"}, ids)
    assert list(variant_to_python(metadata_of(ids), value)) == ["a", "m", "z"]


GROUP = pa.struct([pa.field("metadata", pa.binary()), *group("int")])
FIELD = pa.field("v", VARIANT_ARROW)


def wrapped(shape, kind):
    """A type, or a value of it, inside others."""
    return {
        "struct": lambda: pa.struct([pa.field("n", pa.int32()), pa.field("v", kind)]),
        "list": lambda: pa.list_(pa.field("element", kind)),
        "large list": lambda: pa.large_list(pa.field("element", kind)),
        "fixed list": lambda: pa.list_(pa.field("element", kind), 2),
        "map": lambda: pa.map_(pa.field("key", pa.string(), False), pa.field("value", kind)),
        "lists in a struct": lambda: pa.struct([pa.field("l", pa.list_(pa.field("element", kind)))]),
    }[shape]()


INSIDE = {
    "struct": lambda a, b: [{"n": 1, "v": a}, None, {"n": 2, "v": b}, {"n": 3, "v": None}],
    "list": lambda a, b: [[a, b], None, [], [None, a]],
    "large list": lambda a, b: [[a, b], None, [], [None, a]],
    "fixed list": lambda a, b: [[a, b], [None, a], [b, b], [a, None]],
    "map": lambda a, b: [[("x", a), ("y", b)], None, [], [("z", None)]],
    "lists in a struct": lambda a, b: [{"l": [a]}, None, {"l": None}, {"l": [b, None]}],
}


class TestAskedForWhole:
    """The kernel asks for whole variants, whatever a file has in their place."""

    @pytest.mark.spec("PARQ-13")
    @pytest.mark.parametrize("shape", INSIDE)
    @pytest.mark.parametrize(("start", "length"), [(0, 4), (1, 3), (1, 1), (2, 2), (0, 0)])
    def test_they_are_put_together_inside_anything(self, shape, start, length):
        parts = [{"metadata": METADATA, "value": None, "typed_value": 5}, {"metadata": METADATA, "value": b"\x04"}]
        whole = [{"metadata": METADATA, "value": b"\x14\5\0\0\0"}, {"metadata": METADATA, "value": b"\x04"}]
        held = pa.array(INSIDE[shape](*parts), wrapped(shape, GROUP)).slice(start, length)
        asked = pa.schema([pa.field("c", wrapped(shape, VARIANT_ARROW))])
        stored = stored_columns(pa.schema([pa.field("other", pa.int8()), pa.field("c", held.type)]), asked)
        assert stored == pa.schema([pa.field("c", held.type)])
        batch = pa.RecordBatch.from_arrays([held, pa.array(range(length))], ["c", "_pos"])
        found = with_whole_variants(batch, asked, "memory://x")
        found.validate(full=True)
        assert found.schema.field("c").type.equals(asked.field("c").type, check_metadata=True)
        expected = pa.array(INSIDE[shape](*whole), asked.field("c").type).slice(start, length)
        assert found.column("c").to_pylist() == expected.to_pylist()
        assert found.column("_pos").to_pylist() == [*range(length)]

    @pytest.mark.parametrize(
        "column",
        [
            pa.field("c", pa.int32()),
            pa.field("c", VARIANT_ARROW),
            pa.field("c", pa.struct([pa.field("n", pa.int32())])),
        ],
    )
    def test_what_is_not_shredded_is_read_as_it_is_asked_for(self, column):
        assert stored_columns(pa.schema([column, FIELD]), pa.schema([column])) is None

    def test_a_struct_of_the_table_with_such_names_is_no_variant(self):
        parts = [pa.field(name, pa.binary(), metadata={"PARQUET:field_id": str(at)}) for at, name in
                 enumerate(("metadata", "value", "typed_value"), 2)]  # fmt: skip
        file, asked = (pa.schema([pa.field("c", pa.struct(parts[:count]))]) for count in (3, 2))
        assert stored_columns(file, asked) is None

    @pytest.mark.parametrize(
        ("kind", "wrong"), [(pa.uint64(), UnsupportedFeature), (pa.list_(pa.int32()), InvalidFile)]
    )
    def test_what_no_variant_holds_is_refused_by_column(self, kind, wrong):
        held = pa.struct([pa.field("metadata", pa.binary()), pa.field("typed_value", kind)])
        made = pa.array([{"v": {"metadata": METADATA, "typed_value": [1] if wrong is InvalidFile else 1}}],
                        pa.struct([pa.field("v", held)]))  # fmt: skip
        asked = pa.schema([pa.field("c", pa.struct([FIELD]))])
        with pytest.raises(wrong, match=r"memory://x: column 'c\.v'"):
            with_whole_variants(pa.RecordBatch.from_arrays([made], ["c"]), asked, "memory://x")
