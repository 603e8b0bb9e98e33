"""The projection of a file's columns to the columns of the read schema."""

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from column_projections import field, project
from icefield.errors import InvalidFile
from icefield.scan import ColumnProjection
from icefield.scan.columns.conversions import IncompatibleType, variants_of
from icefield.schema import Schema, parse_name_mapping, schema_to_arrow
from icefield.types import ListType, LongType, MapType, NestedField, StringType, StructType, VariantType
from icefield.types.arrow.types import VARIANT_ARROW, to_arrow_type
from icefield.types.reserved import DELETED, FILE, POS, SPEC_ID, partition_field
from vectors import VECTORS


class TestById:
    @pytest.mark.spec("PRJ-01", "PRJ-02", "PRJ-03", "SCH-06")
    def test_columns_are_found_by_id_and_take_the_order_and_names_of_the_read_schema(self):
        vector = VECTORS["column_projection"]
        fields = [field(name, to_arrow_type(NestedField(id_, name, kind).field_type), id_)
                  for id_, name, kind in vector["file_schema"]]  # fmt: skip
        columns = [pa.array([vector["file_row"][each.name]], each.type) for each in fields]
        types = {id_: kind for id_, _, kind in vector["file_schema"]}
        read = [NestedField(id_, name, types.get(id_, "date")) for id_, name in vector["read_schema"]]
        result = project(read, fields, columns)
        assert list(result.to_pylist()[0].items()) == [tuple(pair) for pair in vector["result"]]

    @pytest.mark.spec("PRJ-01")
    def test_two_swapped_names_do_not_swap_values(self):
        result = project(
            [NestedField(1, "b", "int"), NestedField(2, "a", "int")],
            [field("a", pa.int32(), 1), field("b", pa.int32(), 2)],
            [pa.array([1], pa.int32()), pa.array([2], pa.int32())],
        )
        assert result.to_pylist() == [{"b": 1, "a": 2}]

    @pytest.mark.spec("SCH-07")
    def test_a_column_that_was_dropped_and_added_again_does_not_show_its_old_values(self):
        result = project([NestedField(7, "a", "int")], [field("a", pa.int32(), 1)], [pa.array([1], pa.int32())])
        assert result.to_pylist() == [{"a": None}]

    @pytest.mark.spec("PRJ-13", "PRJ-03")
    def test_a_file_without_ids_and_without_mapping_gives_nulls_and_is_never_read_by_position_or_name(self):
        result = project([NestedField(1, "a", "int")], [field("a", pa.int32())], [pa.array([1], pa.int32())])
        assert result.to_pylist() == [{"a": None}]

    @pytest.mark.spec("PRJ-20", "TYP-19")
    def test_a_required_column_that_the_file_lacks_is_an_error_that_names_it(self):
        with pytest.raises(InvalidFile, match=r"memory://f.*'who' \(id 9\)") as caught:
            project([NestedField(9, "who", "int", required=True)], [field("a", pa.int32(), 1)], [pa.array([1])],
                    location="memory://f")  # fmt: skip
        assert caught.value.field_id == 9
        assert caught.value.location == "memory://f"

    def test_a_required_field_that_a_struct_lacks_is_named_with_its_path(self):
        read = [NestedField(1, "s", StructType(NestedField(2, "x", "int"), NestedField(3, "y", "int", required=True)))]
        struct = pa.struct([field("x", pa.int32(), 2)])
        with pytest.raises(InvalidFile, match=r"'s\.y' \(id 3\)"):
            project(read, [field("s", struct, 1)], [pa.array([{"x": 1}], struct)])

    @pytest.mark.spec("TYP-21")
    def test_a_column_of_unknown_type_is_null_and_what_a_file_holds_under_its_id_is_not_read(self):
        read = [NestedField(1, "u", "unknown"), NestedField(2, "a", "int")]
        fields = [field("u", pa.int32(), 1), field("a", pa.int32(), 2)]
        projection = ColumnProjection.resolve(Schema(*read), pa.schema(fields))
        assert projection.file_columns.names == ["a"]
        result = project(read, fields, [pa.array([5], pa.int32()), pa.array([6], pa.int32())])
        assert result.to_pylist() == [{"u": None, "a": 6}]


class TestChain:
    """Identity partition value, name mapping, initial default, null."""

    READ = (NestedField(1, "a", "int", initial_default=7, write_default=8),)

    @pytest.mark.spec("PRJ-04")
    def test_an_identity_partition_value_stands_for_a_missing_column(self):
        result = project(
            [NestedField(1, "a", "int")], [field("b", pa.int32(), 2)], [pa.array([1, 2], pa.int32())], {1: 5}
        )
        assert result.column("a").to_pylist() == [5, 5]

    @pytest.mark.spec("PRJ-06", "PRJ-04")
    def test_an_identity_partition_value_goes_before_the_initial_default(self):
        assert project(self.READ, [field("b", pa.int32(), 2)], [pa.array([1])], {1: 5}).to_pylist() == [{"a": 5}]

    @pytest.mark.spec("PRJ-06", "DEF-01", "DEF-02")
    def test_the_initial_default_stands_for_a_missing_column_whatever_the_write_default_is(self):
        assert project(self.READ, [field("b", pa.int32(), 2)], [pa.array([1])]).to_pylist() == [{"a": 7}]

    @pytest.mark.spec("PRJ-04")
    def test_what_the_file_holds_goes_before_a_partition_value(self):
        result = project(self.READ, [field("a", pa.int32(), 1)], [pa.array([3, None], pa.int32())], {1: 5})
        assert result.column("a").to_pylist() == [3, None]

    @pytest.mark.spec("PRJ-05", "PRJ-06", "PRJ-10", "PRJ-12")
    def test_a_name_mapping_gives_ids_before_defaults_are_asked(self):
        mapping = parse_name_mapping('[{"field-id": 1, "names": ["old", "a"]}]')
        columns = [pa.array([3], pa.int32())]
        mapped = list(mapping.apply(pa.schema([field("old", pa.int32())])))
        assert project(self.READ, mapped, columns).to_pylist() == [{"a": 3}]
        with_ids = list(mapping.apply(pa.schema([field("old", pa.int32(), 99)])))
        assert project(self.READ, with_ids, columns).to_pylist() == [{"a": 7}]

    @pytest.mark.spec("PRJ-06")
    def test_a_null_partition_value_is_null_and_not_the_default(self):
        assert project(self.READ, [field("b", pa.int32(), 2)], [pa.array([1])], {1: None}).to_pylist() == [{"a": None}]

    @pytest.mark.spec("PRJ-04", "PART-02")
    def test_a_partition_value_of_a_nested_column_brings_the_struct_around_it(self):
        kind = StructType(NestedField(2, "x", "string"), NestedField(3, "y", "int"))
        result = project([NestedField(1, "s", kind)], [field("b", pa.int32(), 9)], [pa.array([1])], {2: "no"})
        assert result.to_pylist() == [{"s": {"x": "no", "y": None}}]
        result = project([NestedField(1, "s", kind)], [field("b", pa.int32(), 9)], [pa.array([1])], {2: None})
        assert result.to_pylist() == [{"s": None}]

    @pytest.mark.spec("DEF-01")
    @pytest.mark.parametrize(
        ("kind", "default", "expected"),
        [
            ("string", "x", "x"),
            ("decimal(9,2)", Decimal("1.20"), Decimal("1.20")),
            ("date", 1, date(1970, 1, 2)),
            ("uuid", b"0123456789abcdef", b"0123456789abcdef"),
            ("boolean", False, False),
        ],
    )
    def test_defaults_of_any_type_fill_whole_columns(self, kind, default, expected):
        read = [NestedField(1, "a", kind, required=True, initial_default=default)]
        assert project(read, [field("b", pa.int32(), 2)], [pa.array([1, 2])]).column("a").to_pylist() == [expected] * 2


class TestZeroCopy:
    def test_columns_that_need_no_change_are_handed_on_as_they_are(self):
        kind = StructType(NestedField(2, "x", "int"), NestedField(3, "l", ListType(4, StringType())))
        schema = Schema(NestedField(1, "s", kind), NestedField(5, "m", MapType(6, StringType(), 7, LongType())))
        arrow = schema_to_arrow(schema)
        rows = [{"s": {"x": 1, "l": ["a", None]}, "m": [("k", 1)]}, {"s": None, "m": None}]
        batch = pa.RecordBatch.from_pylist(rows, schema=arrow)
        result = ColumnProjection.resolve(schema, arrow).apply(batch)
        assert addresses(result) == addresses(batch)

    def test_a_rename_at_any_depth_copies_nothing(self):
        held = Schema(
            NestedField(1, "s", StructType(NestedField(2, "x", "int"), NestedField(3, "l", ListType(4, "string"))))
        )
        read = Schema(
            NestedField(1, "t", StructType(NestedField(2, "y", "int"), NestedField(3, "k", ListType(4, "string"))))
        )
        arrow = schema_to_arrow(held)
        batch = pa.RecordBatch.from_pylist([{"s": {"x": 1, "l": ["a", None]}}, {"s": None}], schema=arrow)
        result = ColumnProjection.resolve(read, arrow).apply(batch)
        assert addresses(result) == addresses(batch)
        assert result.to_pylist() == [{"t": {"y": 1, "k": ["a", None]}}, {"t": None}]

    def test_a_constant_column_is_made_once_and_sliced(self):
        read = Schema(NestedField(1, "a", "int"), NestedField(2, "d", "string", initial_default="x"))
        projection = ColumnProjection.resolve(read, pa.schema([field("a", pa.int32(), 1)]))
        batch = pa.RecordBatch.from_arrays([pa.array(range(10), pa.int32())], schema=projection.file_columns)
        first, second = projection.apply(batch), projection.apply(batch.slice(0, 4))
        assert addresses(first)[2:] == addresses(second)[2:]
        assert second.column("d").to_pylist() == ["x"] * 4


def addresses(batch):
    return [buffer.address if buffer else None for column in batch.columns for buffer in column.buffers()]


class TestMetadataColumns:
    @pytest.mark.spec("PRJ-17", "RSV-02", "RSV-04", "RSV-05", "RSV-06")
    def test_what_states_of_the_file_is_the_same_in_each_row(self):
        partition = partition_field(StructType(NestedField(1000, "p", "string"), NestedField(1001, "q_bucket", "int")))
        read = [NestedField(1, "a", "int"), FILE, SPEC_ID, DELETED, partition]
        constants = {FILE.field_id: "s3://f", SPEC_ID.field_id: 3, partition.field_id: ("x", None)}
        result = project(read, [field("a", pa.int32(), 1)], [pa.array([1, 2], pa.int32())], constants)
        told = {"_file": "s3://f", "_spec_id": 3, "_deleted": False, "_partition": {"p": "x", "q_bucket": None}}
        assert result.to_pylist() == [{"a": 1, **told}, {"a": 2, **told}]

    @pytest.mark.spec("RSV-03")
    def test_positions_are_taken_from_the_reader(self):
        read = Schema(POS, NestedField(1, "a", "int"))
        projection = ColumnProjection.resolve(read, pa.schema([field("a", pa.int32(), 1)]))
        assert projection.positions
        assert projection.file_columns.names == ["a"]
        batch = pa.RecordBatch.from_arrays([pa.array([5, 6], pa.int32()), pa.array([100, 101])], names=["a", "_pos"])
        assert projection.apply(batch).to_pylist() == [{"_pos": 100, "a": 5}, {"_pos": 101, "a": 6}]

    def test_a_file_cannot_pass_its_own_columns_off_as_metadata_columns(self):
        fields = [field("a", pa.int32(), 1), field("_file", pa.string(), FILE.field_id)]
        projection = ColumnProjection.resolve(Schema(FILE), pa.schema(fields), {FILE.field_id: "s3://f"})
        assert projection.file_columns.names == []


class TestWithoutColumns:
    def test_a_batch_without_columns_keeps_its_number_of_rows(self):
        projection = ColumnProjection.resolve(Schema(), pa.schema([field("a", pa.int32(), 1)]))
        bare = pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), 7, [None]))
        assert projection.apply(bare).num_rows == 7


class TestVariants:
    READ = (NestedField(1, "v", VariantType()),)

    def test_a_variant_comes_as_its_two_parts(self):
        held = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary())])
        rows = [{"metadata": b"\1\0\0", "value": b"\0"}, None]
        assert project(self.READ, [field("v", held, 1)], [pa.array(rows, held)]).column("v").to_pylist() == rows

    def test_a_variant_without_a_value_is_the_null_of_variants(self):
        held = pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), False)])
        rows = [{"metadata": b"\1\0\0", "value": None}, None, {"metadata": b"\1\0\0", "value": b"\4"}]
        found = project(self.READ, [field("v", held, 1)], [pa.array(rows, held)]).column("v").to_pylist()
        assert found == [{"metadata": b"\1\0\0", "value": b"\0"}, None, {"metadata": b"\1\0\0", "value": b"\4"}]

    @pytest.mark.parametrize("kind", [pa.large_binary(), pa.binary_view()])
    def test_other_forms_of_bytes_are_taken_and_nothing_else(self, kind):
        held = pa.struct([pa.field("metadata", kind), pa.field("value", kind)])
        rows = [{"metadata": b"\1\0\0", "value": b"\4"}, None]
        assert project(self.READ, [field("v", held, 1)], [pa.array(rows, held)]).column("v").to_pylist() == rows
        held = pa.struct([pa.field("metadata", kind), pa.field("value", pa.int32())])
        with pytest.raises(InvalidFile, match=r"'v'.*no bytes"):
            project(self.READ, [field("v", held, 1)], [pa.array([{"metadata": b"\1\0\0", "value": 4}], held)])

    def test_shredded_variants_are_asked_for_whole(self):
        held = pa.struct([pa.field("metadata", pa.binary()), pa.field("typed_value", pa.int64())])
        inside = pa.list_(pa.field("element", held, metadata=field("x", held, 2).metadata))
        read = Schema(*self.READ, NestedField(3, "l", ListType(2, VariantType())))
        projection = ColumnProjection.resolve(read, pa.schema([field("v", held, 1), field("l", inside, 3)]))
        assert projection.file_columns.field("v").type.equals(VARIANT_ARROW, check_metadata=True)
        assert projection.file_columns.field("l").type.value_type.equals(VARIANT_ARROW, check_metadata=True)

    def test_a_format_that_leaves_shredded_variants_without_their_values_is_found_out(self):
        held = pa.struct([pa.field("metadata", pa.binary()), pa.field("typed_value", pa.int64())])
        projection = ColumnProjection.resolve(Schema(*self.READ), pa.schema([field("v", held, 1)]))
        parts = [pa.array([b"\1\0\0", b""], pa.binary()), pa.array([None, b"\4"], pa.binary())]
        for rows, wrong in ((slice(1, 2), False), (slice(0, 2), True)):
            array = pa.StructArray.from_arrays([part[rows] for part in parts], fields=list(VARIANT_ARROW))
            batch = pa.RecordBatch.from_arrays([array], schema=projection.file_columns)
            if wrong:
                with pytest.raises(InvalidFile, match=r"'v'.*without its value"):
                    projection.apply(batch)
            else:
                assert projection.apply(batch).num_rows == 1

    @pytest.mark.parametrize(
        "held",
        [
            pa.int32(),
            pa.struct([("metadata", pa.binary())]),
            pa.struct([("value", pa.binary())]),
            pa.list_(pa.binary()),
        ],
    )
    def test_what_holds_no_variants_does_not_fit(self, held):
        with pytest.raises(IncompatibleType):
            variants_of(held)
