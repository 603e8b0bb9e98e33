"""Helpers for authors of file formats: blocks, positions, Arrow forms, rows, filters, metrics as JSON."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.abc import ReadRequest, Split
from icefield.errors import InvalidArgument, InvalidFile, InvalidSchema, StorageError, UnsupportedFeature
from icefield.expressions import BoundPredicate, Op, bind, evaluate, parse
from icefield.metadata.metrics import Metrics, MetricsCollector
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import (
    Block,
    BlockReader,
    as_form,
    bare_batch,
    bounded,
    conform,
    from_rows,
    metrics_from_json,
    metrics_to_json,
    parts_that_may_match,
    reporting_damage,
    row_range,
    starts_inside,
    to_rows,
    translate_filter,
    virtual_blocks,
    with_positions,
)
from icefield.types import DateType, LongType, NestedField, TimestampType
from icefield.types.arrow.nested import times_as_numbers
from icefield_testing.format_data import EDGES, NESTED, NESTED_ROWS, VERSION_3, flat_table, table_of, tables

SCHEMA = Schema(NestedField(1, "n", LongType(), required=True))
NUMBERS = pa.schema([pa.field("n", pa.int64(), nullable=False)])


def numbers(start: int, stop: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(range(start, stop), pa.int64())], schema=NUMBERS)


class Reader(BlockReader):
    """A file of row numbers in blocks, each in batches of any size."""

    def __init__(self, blocks: Sequence[Block], held: Sequence[Sequence[pa.RecordBatch]]) -> None:
        self.location, self._blocks, self._held = "memory://numbers", blocks, held

    schema = NUMBERS
    metadata: ClassVar[dict[str, bytes]] = {}

    @property
    def blocks(self) -> Sequence[Block]:
        return self._blocks

    def read_block(self, number: int, columns: pa.Schema) -> Iterable[pa.RecordBatch]:
        return self._held[number]

    def close(self) -> None:
        pass


def reader(rows: int, block_rows: int, batch_rows: int, size: int = 10_000) -> Reader:
    blocks = virtual_blocks(rows, size, block_rows)
    held, first = [], 0
    for block in blocks:
        held.append(list(bounded([numbers(first, first + block.rows)], batch_rows)))
        first += block.rows
    return Reader(blocks, held)


@given(
    rows=st.integers(0, 300),
    size=st.integers(1, 400),
    block_rows=st.integers(1, 100),
    batch_rows=st.integers(1, 50),
    cuts=st.lists(st.integers(0, 400), max_size=5),
)
def test_splits_of_blocks_give_each_row_once_with_its_position(
    rows: int, size: int, block_rows: int, batch_rows: int, cuts: list[int]
) -> None:
    open_file = reader(rows, block_rows, 7, size)
    places = sorted({0, size, *(cut for cut in cuts if cut < size)})
    found = []
    for start, end in pairwise(places):
        request = ReadRequest(NUMBERS, split=Split(start, end - start), positions=True, batch_rows=batch_rows)
        for batch in open_file.read(request):
            assert 0 < batch.num_rows <= batch_rows
            assert batch.column("n").equals(batch.column("_pos"))
            found += batch.column("n").to_pylist()
    assert found == list(range(rows))


@given(rows=st.integers(0, 5_000), size=st.integers(0, 5_000), block_rows=st.integers(1, 1_000))
def test_virtual_blocks_start_at_places_of_their_own_inside_the_file(rows: int, size: int, block_rows: int) -> None:
    blocks = virtual_blocks(rows, size, block_rows)
    offsets = [block.offset for block in blocks]
    assert sum(block.rows for block in blocks) == rows
    assert offsets == sorted(set(offsets))
    assert all(0 <= offset < max(size, 1) for offset in offsets)
    assert all(block.rows > 0 for block in blocks)


def test_a_split_has_its_first_byte_and_not_the_one_after_its_last() -> None:
    assert [starts_inside(Block(at, 1), Split(10, 5)) for at in (9, 10, 14, 15)] == [False, True, True, False]
    assert starts_inside(Block(99, 1), None)


@pytest.mark.parametrize("promised", [2, 4])
def test_a_block_with_another_number_of_rows_is_damage(promised: int) -> None:
    wrong = Reader([Block(0, promised)], [[numbers(0, 3)]])
    with pytest.raises(InvalidFile, match="block 0 does not hold the") as caught:
        list(wrong.read(ReadRequest(NUMBERS)))
    assert caught.value.data["location"] == "memory://numbers"


def test_a_null_in_a_required_column_is_damage() -> None:
    wrong = Reader([Block(0, 1)], [[pa.record_batch([pa.array([None], pa.int64())], ["n"])]])
    with pytest.raises(InvalidFile, match="a null in the required column 'n'"):
        list(wrong.read(ReadRequest(NUMBERS)))


def test_rows_are_counted_from_the_blocks_alone() -> None:
    nothing = Reader([Block(0, 3), Block(9, 4)], [])
    batches = list(nothing.read(ReadRequest(pa.schema([]), positions=True, batch_rows=2)))
    assert [batch.num_rows for batch in batches] == [2, 1, 2, 2]
    assert [row for batch in batches for row in batch.column(0).to_pylist()] == list(range(7))
    assert nothing.metrics() == Metrics(7)
    assert nothing.record_count == 7
    assert nothing.split_offsets == [0, 9]


def test_blocks_that_a_filter_excludes_are_not_read_and_positions_stay_right() -> None:
    class Filtered(Reader):
        def block_metrics(self) -> Sequence[Metrics]:
            told = []
            for batches in self._held:
                collector = MetricsCollector(schema_to_arrow(SCHEMA))
                for batch in batches:
                    collector.update(batch)
                told.append(collector.metrics())
            return told

    blocks = reader(100, 10, 4)
    columns = schema_to_arrow(SCHEMA)
    open_file = Filtered(blocks.blocks, blocks._held)
    wanted = ReadRequest(columns, row_filter=bind(SCHEMA, parse("n in (5, 47)")), positions=True)
    got = [row for batch in open_file.read(wanted) for row in batch.column("_pos").to_pylist()]
    assert got == [*range(10), *range(40, 50)]


def test_row_ranges_are_counted_over_all_batches() -> None:
    batches = [numbers(0, 4), numbers(4, 4), numbers(4, 9)]
    for start in range(11):
        for stop in range(11):
            got = [n for batch in row_range(batches, start, stop) for n in batch.column(0).to_pylist()]
            assert got == list(range(9))[start:stop]


def test_a_row_range_asks_for_no_batch_after_its_end() -> None:
    def batches() -> Iterable[pa.RecordBatch]:
        yield numbers(0, 4)
        raise AssertionError("asked for")

    assert [batch.num_rows for batch in row_range(batches(), 1, 4)] == [3]


def test_positions_are_longs_that_are_never_null() -> None:
    batch = with_positions(numbers(0, 3), 2**40)
    assert batch.schema.field("_pos") == pa.field("_pos", pa.int64(), nullable=False)
    assert batch.column("_pos").to_pylist() == [2**40, 2**40 + 1, 2**40 + 2]
    assert with_positions(bare_batch(2), 5).to_pylist() == [{"_pos": 5}, {"_pos": 6}]


def test_a_batch_of_no_rows_is_no_bound() -> None:
    with pytest.raises(InvalidArgument):
        list(bounded([numbers(0, 1)], 0))


# -- Arrow forms

FORMS = [
    (pa.array(["a", None, ""], pa.large_string()), pa.string()),
    (pa.array(["a", None, ""], pa.string_view()), pa.string()),
    (pa.array(["a", None, "a"]).dictionary_encode(), pa.string()),
    (pc.run_end_encode(pa.array(["a", "a", None])), pa.string()),
    (pa.array([b"a", None], pa.large_binary()), pa.binary()),
    (pa.array([b"abc", None], pa.binary()), pa.binary(3)),
    (pa.array([b"x" * 16], pa.binary(16)).cast(pa.uuid()) if hasattr(pa, "uuid") else pa.nulls(1), pa.binary(16)),
    (pa.array([1, None], pa.int16()), pa.int64()),
    (pa.array([1.5, None], pa.float32()), pa.float64()),
    (pa.array([Decimal("1.50"), None], pa.decimal256(40, 2)), pa.decimal128(9, 2)),
    (pa.array([1_000, None], pa.timestamp("ns")), pa.timestamp("us")),
    (pa.array([5, None], pa.timestamp("us", "Europe/Berlin")), pa.timestamp("us", "UTC")),
    (pa.array([5, None], pa.timestamp("ms")), pa.timestamp("us", "UTC")),
    (pa.array([7, None], pa.int32()), pa.date32()),
    (pa.array([7, None], pa.int64()), pa.time64("us")),
    (pa.array([[1, None], None, []], pa.large_list(pa.int64())), pa.list_(pa.int64())),
    (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), pa.list_(pa.int64())),
    (pa.nulls(2), pa.list_(pa.string())),
]


@pytest.mark.parametrize(("array", "wanted"), FORMS, ids=lambda value: str(getattr(value, "type", value)))
def test_any_arrow_form_becomes_the_one_that_is_asked_for(array: pa.Array, wanted: pa.DataType) -> None:
    for part in (array, array.slice(1)):
        made = as_form(part, wanted)
        assert made.type.equals(wanted, check_metadata=True)
        made.validate(full=True)
        plain = part.storage if isinstance(part, pa.ExtensionArray) else part
        if pa.types.is_temporal(wanted) and not pa.types.is_temporal(array.type):
            assert times_as_numbers(made).to_pylist() == plain.to_pylist()
        elif pa.types.is_timestamp(wanted):
            assert made.cast(pa.timestamp("us")).to_pylist() == part.cast(pa.timestamp("us")).to_pylist()
        else:
            assert made.to_pylist() == plain.to_pylist()


def test_forms_are_found_at_every_depth_and_ids_are_given_to_nested_fields() -> None:
    for shape, kind in NESTED.items():
        schema, table = table_of(kind, NESTED_ROWS[shape], required=False)
        wanted = schema_to_arrow(schema)
        for given_batch in (table.to_batches()[0], table.to_batches()[0].slice(1)):
            columns = [_other_form(column) for column in given_batch.columns]
            made = conform(pa.RecordBatch.from_arrays(columns, given_batch.schema.names), wanted)
            assert made.schema.equals(wanted, check_metadata=True)
            made.validate(full=True)
            assert made.to_pylist() == given_batch.to_pylist()


def _other_form(array: pa.Array) -> pa.Array:
    """The same values with large offsets and without metadata."""
    return array.cast(_large(array.type)) if not pa.types.is_map(array.type) else array


def _large(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string(kind):
        return pa.large_string()
    if pa.types.is_list(kind):
        return pa.large_list(pa.field("item", _large(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(child.name, _large(child.type)) for child in kind.fields])
    return kind


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (pa.array([2**40]), pa.int32()),
        (pa.array([b"ab"]), pa.binary(3)),
        (pa.array([b"\xff"]), pa.string()),
        (pa.array([1_001], pa.timestamp("ns")), pa.timestamp("us")),
        (pa.array([Decimal("1.55")]), pa.decimal128(9, 1)),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_a_value_that_does_not_fit_is_refused_and_not_changed(array: pa.Array, wanted: pa.DataType) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of Arrow, in its own words
        as_form(array, wanted)


@pytest.mark.parametrize(
    ("have", "wanted"),
    [(pa.string(), pa.int64()), (pa.float64(), pa.float32()), (pa.float64(), pa.int64()), (pa.int64(), pa.float64())],
    ids=str,
)
def test_a_type_of_another_kind_is_refused(have: pa.DataType, wanted: pa.DataType) -> None:
    with pytest.raises(InvalidArgument, match="column 'v' is"):
        as_form(pa.array([], have), wanted, "v")


def test_a_null_below_a_null_parent_is_no_null_of_a_required_field() -> None:
    required = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    columns = pa.schema([pa.field("s", required)])
    array = pa.array([{"x": 1}, None], pa.struct([pa.field("x", pa.int64())]))
    assert conform(pa.record_batch([array], ["s"]), columns).to_pylist() == [{"s": {"x": 1}}, {"s": None}]
    bad = pa.array([{"x": 1}, {"x": None}, None], pa.struct([pa.field("x", pa.int64())]))
    with pytest.raises(ValueError, match="a null in the required column 'x'"):
        conform(pa.record_batch([bad], ["s"]), columns)
    inside = pa.schema([pa.field("l", pa.list_(pa.field("element", pa.int64(), nullable=False)))])
    with pytest.raises(ValueError, match="a null in the required column 'element'"):
        conform(pa.record_batch([pa.array([None, [1, None]], pa.list_(pa.int64()))], ["l"]), inside)


# -- rows


@given(made=tables())
def test_any_table_survives_as_rows(made: tuple[Schema, pa.Table]) -> None:
    schema, table = made
    for batch in table.to_batches():
        again = from_rows(to_rows(batch), schema_to_arrow(schema))
        assert again.equals(batch)
        assert again.schema.equals(batch.schema, check_metadata=True)


@pytest.mark.parametrize("kind", [*EDGES, *VERSION_3], ids=str)
def test_values_at_the_edges_of_each_type_survive_as_rows(kind: object) -> None:
    schema, table = table_of(kind, EDGES.get(kind) or VERSION_3[kind], required=False)  # type: ignore[index,call-overload,arg-type]
    batch = table.combine_chunks().to_batches()[0]
    again = from_rows(to_rows(batch), schema_to_arrow(schema))
    assert repr(to_rows(again)) == repr(to_rows(batch))
    assert again.schema.equals(batch.schema, check_metadata=True)


def test_rows_have_numbers_for_times_and_pairs_for_maps() -> None:
    _, table = table_of(NESTED["struct in map"], [[("k", {"v": datetime.date(1970, 1, 3)})]], required=True)
    assert to_rows(table.to_batches()[0]) == [{"n": 0, "v": [("k", {"v": 2})]}]


def test_leaves_are_converted_at_every_depth_and_nulls_are_left_alone() -> None:
    def shout(kind: pa.DataType) -> object:
        return str.upper if pa.types.is_string(kind) else None

    rows = [{"a": "x", "m": [("k", ["y", None])], "s": {"t": "z", "n": 1}}, {"a": None, "m": None, "s": None}]
    columns = pa.schema(
        [
            ("a", pa.string()),
            ("m", pa.map_(pa.string(), pa.list_(pa.string()))),
            ("s", pa.struct([("t", pa.string()), ("n", pa.int64())])),
        ]
    )
    expected = [{"a": "X", "m": [("K", ["Y", None])], "s": {"t": "Z", "n": 1}}, rows[1]]
    assert to_rows(from_rows(rows, columns), shout) == expected  # type: ignore[arg-type]
    assert to_rows(from_rows(rows, columns, shout)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["x", 1.5, True, 2**70, [1], {"a": 1}, b"1"], ids=repr)
def test_a_value_of_another_type_is_a_value_error(value: object) -> None:
    with pytest.raises(ValueError, match="column 'n'"):
        from_rows([{"n": value}], NUMBERS)


def test_what_a_row_lacks_is_null_and_what_it_has_besides_is_ignored() -> None:
    assert from_rows([{"b": 1}, {"a": 2}], pa.schema([("a", pa.int64())])).to_pydict() == {"a": [None, 2]}
    assert from_rows([{}, {}], pa.schema([])).num_rows == 2


# -- filters


def _translated(text: str, schema: Schema, known: frozenset[Op]) -> object:
    def leaf(test: BoundPredicate) -> str | None:
        return f"{test.path[0]} {test.op.value}" if test.op in known else None

    return translate_filter(bind(schema, parse(text)), leaf, " & ".join, " | ".join)


def test_a_test_that_cannot_be_translated_is_left_out_of_an_and_and_undoes_an_or() -> None:
    schema, _ = flat_table(0)
    known = frozenset({Op.EQ, Op.LT})
    assert _translated("n = 1 and d < 2.0", schema, known) == "n = & d <"
    assert _translated("n = 1 and s is null", schema, known) == "n ="
    assert _translated("n = 1 or s is null", schema, known) is None
    assert _translated("d < 2.0 and (n = 1 or s is null)", schema, known) == "d <"
    assert _translated("s is null", schema, known) is None
    assert _translated("n = 1 or d < 2.0", schema, known) == "n = | d <"


@given(
    values=st.lists(st.none() | st.integers(-5, 5), min_size=1, max_size=30),
    text=st.sampled_from(["v < 2", "v >= 0 and v < 3", "v is null", "v != 1", "v in (1, 4)", "v = -3 or v > 4"]),
    part=st.integers(1, 6),
)
def test_no_part_with_a_matching_row_is_skipped(values: list[int | None], text: str, part: int) -> None:
    schema = Schema(NestedField(1, "v", LongType()))
    columns = schema_to_arrow(schema)
    batch = pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], schema=columns)
    parts = list(bounded([batch], part))
    metrics = []
    for one in parts:
        collector = MetricsCollector(columns)
        collector.update(one)
        metrics.append(collector.metrics())
    row_filter = bind(schema, parse(text))
    for one, kept in zip(parts, parts_that_may_match(row_filter, columns, metrics), strict=True):
        assert kept or not pc.any(evaluate(row_filter, one)).as_py()


def test_bounds_of_a_column_that_was_promoted_are_compared_in_the_type_of_the_filter() -> None:
    held = schema_to_arrow(Schema(NestedField(1, "v", DateType())))
    row_filter = bind(Schema(NestedField(1, "v", TimestampType())), parse("v = '1970-01-11T00:00:00'"))
    metrics = [Metrics(1, value_counts={1: 1}, lower_bounds={1: day}, upper_bounds={1: day}) for day in (9, 10, 11)]
    assert parts_that_may_match(row_filter, held, metrics) == [False, True, False]
    assert parts_that_may_match(row_filter, held, [Metrics(5)]) == [True]


# -- metrics as JSON


@given(made=tables())
def test_metrics_of_any_table_survive_as_json(made: tuple[Schema, pa.Table]) -> None:
    schema, table = made
    collector = MetricsCollector(schema_to_arrow(schema))
    for batch in table.to_batches():
        collector.update(batch)
    metrics = collector.metrics()
    assert metrics_from_json(metrics_to_json(metrics, schema), schema) == metrics


def test_metrics_of_every_type_survive_as_json() -> None:
    for kind in [*EDGES, *VERSION_3]:
        schema, table = table_of(kind, EDGES.get(kind) or VERSION_3[kind], required=False)
        collector = MetricsCollector(schema_to_arrow(schema))
        collector.update(table.combine_chunks().to_batches()[0])
        metrics = collector.metrics()
        assert repr(metrics_from_json(metrics_to_json(metrics, schema), schema)) == repr(metrics)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("record_count", -1),
        ("record_count", True),
        ("value_counts", {"1": "3"}),
        ("value_counts", {"x": 3}),
        ("value_counts", [3]),
        ("lower_bounds", {"1": "zz"}),
        ("lower_bounds", {"1": "00"}),
        ("lower_bounds", {"99": "00"}),
        ("upper_bounds", {"1": 5}),
    ],
    ids=repr,
)
def test_json_that_is_no_metrics_is_a_value_error(name: str, value: object) -> None:
    whole = metrics_to_json(Metrics(3), SCHEMA)
    with pytest.raises(ValueError):  # noqa: PT011 - Python's own words for numbers
        metrics_from_json({**whole, name: value}, SCHEMA)
    with pytest.raises(ValueError, match="damaged"):
        metrics_from_json({}, SCHEMA)


# -- damage


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ValueError("no number"), InvalidFile),
        (pa.ArrowInvalid("bad buffer"), InvalidFile),
        (KeyError("rows"), InvalidFile),
        (OSError("not an Arrow file"), InvalidFile),
        (RecursionError("too deep"), InvalidFile),
        (OSError(5, "input/output error"), StorageError),
        (pa.ArrowNotImplementedError("codec 9"), UnsupportedFeature),
        (InvalidSchema("no type 'x'"), InvalidSchema),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_raised_while_decoding_names_the_file(raised: Exception, expected: type[Exception]) -> None:
    with pytest.raises(expected) as caught, reporting_damage("memory://x/file", "the footer"):
        raise raised
    assert caught.value.data["location"] == "memory://x/file"  # type: ignore[attr-defined]
    assert "memory://x/file" in str(caught.value)


def test_an_error_of_the_formats_own_library_is_damage_when_it_is_named() -> None:
    class Broken(Exception):
        pass

    with pytest.raises(Broken), reporting_damage("memory://x"):
        raise Broken("bad")
    with pytest.raises(InvalidFile), reporting_damage("memory://x", "the header", Broken):
        raise Broken("bad")
