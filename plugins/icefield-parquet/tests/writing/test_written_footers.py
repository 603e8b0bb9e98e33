"""Footers as they are written, byte for byte: both annotations where the format has both, and nothing else changed."""

import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from icefield import MemoryFileSystem
from icefield.schema import Schema, schema_to_arrow
from icefield.types import DecimalType, ListType, MapType, NestedField, StructType, VariantType, parse_type
from icefield_parquet.footer import completed_tail
from icefield_parquet.parquet_format import ParquetFormat
from icefield_parquet.thrift import parse_schema, read_struct, write_struct
from icefield_parquet.writing.layout import layout_of
from parquet_files import read, read_as, write_rows
from parquet_footer import element, elements, footer
from parquet_forge import forge
from vectors import VECTORS

PRIMITIVES = ("boolean", "int", "long", "float", "double", "decimal(9,2)", "decimal(18,2)", "decimal(38,2)", "date",
              "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns", "string", "uuid", "fixed[5]",
              "binary", "geometry", "geography", "geography(OGC:CRS84, andoyer)")  # fmt: skip
ANNOTATED = {
    "decimal(9,2)": "DECIMAL(9,2)", "decimal(18,2)": "DECIMAL(18,2)", "decimal(38,2)": "DECIMAL(38,2)",
    "date": "DATE", "time": "TIME(false,MICROS)", "timestamp": "TIMESTAMP(false,MICROS)",
    "timestamptz": "TIMESTAMP(true,MICROS)", "timestamp_ns": "TIMESTAMP(false,NANOS)",
    "timestamptz_ns": "TIMESTAMP(true,NANOS)", "string": "STRING", "uuid": "UUID", "geometry": "GEOMETRY",
    "geography": "GEOGRAPHY", "geography(OGC:CRS84, andoyer)": "GEOGRAPHY(ANDOYER)",
}  # fmt: skip


def converted_for(logical):
    """What stands next to a logical type in the old annotation."""
    table = VECTORS["parquet_logical_to_converted"]
    return table[logical] if logical in table else table[logical.partition("(")[0]]


def written(schema, rows=(), **options):
    return write_rows(schema, list(rows), **options)[0]


class TestBothAnnotations:
    @pytest.mark.spec("PLT-04", "PLT-01", "PLT-29", "PLT-30", "PLT-33", "PLT-39", "PLT-14", "PARQ-05", "PARQ-06")
    @pytest.mark.parametrize("kind", PRIMITIVES)
    @pytest.mark.parametrize("place", ["column", "field", "element", "key", "value"])
    def test_each_type_has_both_at_every_depth(self, kind, place):
        leaf = parse_type(kind)
        if place == "key" and kind.startswith("geo"):
            return
        shape = {
            "column": leaf,
            "field": StructType(NestedField(2, "x", leaf)),
            "element": ListType(2, leaf),
            "key": MapType(2, leaf, 3, "int"),
            "value": MapType(3, "int", 2, leaf),
        }[place]
        all_held = elements(written(Schema(NestedField(1, "v", shape))))
        (held,) = (each for each in all_held if each.field_id == (1 if place == "column" else 2))
        assert held.logical == ANNOTATED.get(kind)
        assert held.converted == (converted_for(held.logical) if held.logical else None)

    @pytest.mark.spec("PLT-33", "PLT-39")
    def test_local_times_have_the_old_annotation_that_the_format_demands(self):
        data = written(Schema(NestedField(1, "t", "time"), NestedField(2, "s", "timestamp")))
        assert element(data, "t").converted == "TIME_MICROS"
        assert element(data, "s").converted == "TIMESTAMP_MICROS"

    @pytest.mark.spec("PLT-04", "PLT-47", "PARQ-11", "PARQ-12")
    def test_lists_and_maps_have_both_and_nothing_is_repeated_outside_them(self):
        inner = MapType(5, "string", 6, ListType(7, "time"))
        held = elements(written(Schema(NestedField(1, "l", ListType(2, ListType(3, inner))))))
        groups = [each for each in held if each.logical in ("LIST", "MAP")]
        assert len(groups) == 4
        assert all(each.converted == each.logical and each.repetition != "repeated" for each in groups)
        repeated = [position for position, each in enumerate(held) if each.repetition == "repeated"]
        assert len(repeated) == 4
        for position in repeated:
            above, each = held[position - 1], held[position]
            assert (above.logical, each.name) in (("LIST", "list"), ("MAP", "key_value"))
            assert (each.logical, each.converted, above.children) == (None, None, 1)

    @pytest.mark.spec("PLT-23")
    def test_a_decimal_has_its_digits_in_both_places(self):
        held = element(written(Schema(NestedField(1, "d", DecimalType(20, 7)))), "d")
        assert (held.logical, held.converted, held.precision, held.scale) == ("DECIMAL(20,7)", "DECIMAL", 20, 7)

    @pytest.mark.spec("PLT-10")
    def test_no_width_is_promised_that_a_value_could_exceed(self):
        held = elements(written(Schema(NestedField(1, "i", "int"), NestedField(2, "l", "long"))))
        assert [(each.physical, each.logical, each.converted) for each in held] == [
            ("int32", None, None), ("int64", None, None)
        ]  # fmt: skip

    @pytest.mark.spec("PARQ-13", "PARQ-01")
    def test_a_variant_is_a_group_of_two_fields_without_ids(self):
        schema = Schema(NestedField(1, "v", VariantType()), NestedField(2, "l", ListType(3, VariantType())))
        held = elements(written(schema))
        assert [(each.name, each.field_id, each.logical) for each in held if each.name != "list"] == [
            ("v", 1, "VARIANT(1)"), ("metadata", None, None), ("value", None, None), ("l", 2, "LIST"),
            ("element", 3, "VARIANT(1)"), ("metadata", None, None), ("value", None, None),
        ]  # fmt: skip
        assert {each.physical for each in held if each.name in ("metadata", "value")} == {"binary"}
        assert {each.repetition for each in held if each.name in ("metadata", "value")} == {"required"}

    @pytest.mark.spec("PARQ-13", "MET-15")
    def test_a_variant_comes_back_and_states_its_size_and_no_bounds(self):
        kind = StructType(NestedField(3, "w", VariantType()), NestedField(4, "n", "int"))
        schema = Schema(NestedField(1, "v", VariantType(), required=True), NestedField(2, "s", kind))
        five = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x05"}
        rows = [{"v": five, "s": {"w": None, "n": 1}}, {"v": five, "s": None}, {"v": five, "s": {"w": five, "n": 2}}]
        data, written = write_rows(schema, rows)
        assert read_as(schema, data).to_pylist() == rows
        numbers = [{"s": row["s"] and {"n": row["s"]["n"]}} for row in rows]
        assert read_as(schema.select_ids({4}), data).to_pylist() == numbers
        file = pq.ParquetFile(pa.BufferReader(data)).metadata
        chunks = [file.row_group(0).column(index) for index in range(5)]
        assert written.metrics.column_sizes == {
            1: chunks[0].total_compressed_size + chunks[1].total_compressed_size,
            3: chunks[2].total_compressed_size + chunks[3].total_compressed_size,
            4: chunks[4].total_compressed_size,
        }
        assert [chunk.is_stats_set for chunk in chunks] == [False, False, False, False, True]
        assert (written.metrics.value_counts[3], written.metrics.null_value_counts[3]) == (3, 2)
        assert written.metrics.lower_bounds.keys() == {4}


TYPES = st.recursive(
    st.sampled_from([*PRIMITIVES, "variant"]).map(parse_type),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map(
            lambda kinds: StructType(*(NestedField(0, f"f{at}", kind) for at, kind in enumerate(kinds)))
        ),
        inner.map(lambda kind: ListType(0, kind)),
        inner.map(lambda kind: MapType(0, "time", 0, kind)),
    ),
    max_leaves=8,
)


def with_ids(kind, ids):
    if isinstance(kind, StructType):
        return StructType(*(NestedField(next(ids), each.name, with_ids(each.field_type, ids)) for each in kind.fields))
    if isinstance(kind, ListType):
        return ListType(next(ids), with_ids(kind.element_type, ids))
    if isinstance(kind, MapType):
        return MapType(next(ids), kind.key_type, next(ids), with_ids(kind.value_type, ids))
    return kind


class Keeping:
    """Keeps what the writer hands to the step that completes footers."""

    def __init__(self, monkeypatch):
        self.tails = []
        monkeypatch.setattr("icefield_parquet.writing.writer.completed_tail", self)

    def __call__(self, tail, logical_types, known):
        self.tails.append((tail, completed_tail(tail, logical_types, known)))
        return self.tails[-1][1]


class TestNothingElseChanges:
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(kinds=st.lists(TYPES, min_size=1, max_size=5))
    def test_the_footer_is_the_librarys_but_for_annotations(self, kinds):
        ids = iter(range(1, 1_000))
        names = [f"c{at}" * (at * 40 + 1) for at in range(len(kinds))]
        fields = [NestedField(next(ids), name, with_ids(kind, ids)) for name, kind in zip(names, kinds, strict=True)]
        schema = Schema(*fields, NestedField(next(ids), "t", "time"))
        with pytest.MonkeyPatch.context() as patch:
            kept = Keeping(patch)
            data = written(schema, [dict.fromkeys([field.name for field in schema.fields])])
        ((before, after),) = kept.tails
        assert data.endswith(after)
        fields_of, fields_now = footer(b"PAR1" + before), footer(b"PAR1" + after)
        assert {key: value for key, value in fields_of.items() if key != 2} == {
            key: value for key, value in fields_now.items() if key != 2
        }
        for old, new in zip(fields_of[2], fields_now[2], strict=True):
            assert {key: value for key, value in new.items() if key in old} == old, "what was there is there"
            assert new.keys() - old.keys() <= {6, 10}
        length = int.from_bytes(after[-8:-4], "little")
        assert parse_schema(after[-8 - length : -8]).encode() == after[-8 - length : -8]

    def test_bytes_before_the_footer_stay(self):
        schema = Schema(NestedField(1, "t", "time"), NestedField(2, "s", "string"))
        rows = [{"t": None, "s": f"text-{number}"} for number in range(500)]
        bloom = {"write.parquet.bloom-filter-enabled.column.s": "true"}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("icefield_parquet.writing.writer.completed_tail", lambda tail, *_: tail)
            plain = written(schema, rows, properties=bloom)
        data = written(schema, rows, properties=bloom)
        length = int.from_bytes(plain[-8:-4], "little")
        assert data[: len(plain) - 8 - length] == plain[: -8 - length]
        assert len(data) - len(plain) == 2, "a field of two bytes, and that of the next id needs no more than before"
        assert read(data)["s"].to_pylist() == [row["s"] for row in rows]

    def test_what_was_done_for_one_file_is_done_for_the_next_and_no_other_schema(self):
        schema = Schema(NestedField(1, "t", "time"), NestedField(2, "v", VariantType()))
        known = []
        with pytest.MonkeyPatch.context() as patch:
            kept = Keeping(patch)
            files = [written(schema, [{"t": None, "v": None}] * count) for count in (0, 1, 1_000)]
        for data, (before, _) in zip(files, kept.tails, strict=True):
            alone = completed_tail(before, dict(layout_of(schema).logical_types))
            assert data.endswith(alone)
            assert completed_tail(before, layout_of(schema).logical_types, known) == alone
            assert len(known) == 1
        other = forge("optional int64 t (TIME(false,MILLIS)) = 1; optional int64 u (TIME(true,MICROS)) = 2;", [])
        assert completed_tail(other, {}, known) == completed_tail(other, {})
        assert [each[6] for each in footer(b"PAR1" + completed_tail(other, {}, known))[2][1:]] == [7, 8]

    @pytest.mark.spec("PARQ-05", "PARQ-09", "PARQ-14", "PLT-33")
    def test_what_other_releases_of_the_library_write_is_put_right(self):
        """Some take each time for one in UTC, some know no uuids, some no shapes."""
        schema = Schema(NestedField(1, "t", "time"), NestedField(2, "u", "uuid"), NestedField(3, "g", "geometry"))
        message = (
            "optional int64 t (TIME(true,MICROS)) (TIME_MICROS) = 1; optional fixed_len_byte_array(16) u = 2; "
            "optional binary g = 3; optional int64 kept (TIME(true,MICROS)) = 4;"
        )
        completed = b"PAR1" + completed_tail(forge(message, []), layout_of(schema).logical_types)
        assert [(each.logical, each.converted) for each in elements(completed)] == [
            ("TIME(false,MICROS)", "TIME_MICROS"), ("UUID", None), ("GEOMETRY", None),
            ("TIME(true,MICROS)", "TIME_MICROS"),
        ]  # fmt: skip

    def test_a_schema_without_times_is_written_through(self):
        with pytest.MonkeyPatch.context() as patch:
            kept = Keeping(patch)
            written(Schema(NestedField(1, "n", "long"), NestedField(2, "z", "timestamptz_ns")))
        assert kept.tails == []

    def test_the_size_that_is_stated_is_that_of_the_completed_file(self):
        schema = Schema(*(NestedField(number, f"t{number}", "time") for number in range(1, 40)))
        data, written = write_rows(schema, [])
        assert written.size == len(data)


class TestCost:
    @pytest.mark.slow
    def test_the_work_grows_with_the_schema_and_not_with_its_square(self):
        taken = []
        for columns in (1_000, 10_000):
            fields = (f"optional int64 c{number} (TIME(false,MICROS)) = {number};" for number in range(columns))
            data = forge(" ".join(fields), [])
            started = time.process_time()
            completed = completed_tail(data, {})
            taken.append((time.process_time() - started) / columns)
            assert all(each[6] == 8 for each in footer(completed)[2][1:])
        assert taken[1] < 4 * taken[0], "seconds a column"


class TestStrictness:
    @pytest.mark.parametrize(
        "held", [b"", b"\x15", b"\x15\x04", b"\x15\x04\x19\x1c", b"\x16\x04\x19\x0c\0", b"\x15\x04\x19\x15\x02\0"]
    )
    def test_a_footer_that_is_none_is_refused(self, held):
        with pytest.raises(ValueError, match="footer"):
            completed_tail(held + len(held).to_bytes(4, "little") + b"PAR1", {})
        with pytest.raises(ValueError, match="Parquet file"):
            completed_tail(held + b"\xff\0\0\0PAR1", {})

    def test_a_field_that_is_not_there_is_an_error_and_no_file_is_published(self, monkeypatch):
        data = forge("required int32 a = 1;", [])
        with pytest.raises(ValueError, match="99"):
            completed_tail(data, {99: b"\0"})

        def fail(tail, *_):
            raise ValueError("no footer")

        monkeypatch.setattr("icefield_parquet.writing.writer.completed_tail", fail)
        location = "memory://footers/failed"
        schema = Schema(NestedField(1, "t", "time"))
        writer = ParquetFormat().open_writer(MemoryFileSystem().open_output(location), schema)
        writer.write(pa.RecordBatch.from_pylist([{"t": None}], schema=schema_to_arrow(schema)))
        with pytest.raises(ValueError, match="no footer"):
            writer.close()
        with pytest.raises(FileNotFoundError):
            MemoryFileSystem().stat(location)

    @given(st.dictionaries(st.integers(1, 400), st.sampled_from([(5, b"\x02"), (8, b"\x01a"), (12, b"\0"), (1, b"")])))
    def test_structs_survive_the_way_there_and_back(self, fields):
        data = write_struct(fields)
        assert read_struct(data, 0) == (fields, len(data))
