"""From a file's columns to those of the read schema."""

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from icefield.errors import InvalidFile
from icefield.scan.column_projection import ColumnProjection
from icefield.scan.conversions import Unfit
from icefield.scan.variants import variants_of
from icefield.schema import Schema, parse_name_mapping, schema_to_arrow
from icefield.types import IntegerType, ListType, LongType, MapType, NestedField, StringType, StructType, VariantType
from icefield.types.arrow.types import FIELD_ID_KEY, VARIANT_ARROW, to_arrow_field, to_arrow_type
from icefield.types.reserved import DELETED, FILE, POS, SPEC_ID, partition_field
from vectors import VECTORS


def field(name, kind, id_=None, nullable=True):
    return pa.field(name, kind, nullable, {FIELD_ID_KEY: str(id_).encode()} if id_ is not None else None)


def project(read, fields, columns, constants=None, **options):
    """Project one batch; ``fields`` are the file's, and only those are handed over that were asked for."""
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
    """What a reader gives for a pruned column."""
    if not pa.types.is_struct(wanted):
        return array
    children = [prune(array.field(child.name), child.type) for child in wanted]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=mask)


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


class TestStructs:
    POINT = (NestedField(2, "x", "int", initial_default=0), NestedField(3, "y", "int", initial_default=0))

    @pytest.mark.spec("DEF-08", "DEF-10")
    @pytest.mark.parametrize("vector", VECTORS["struct_default_point"])
    def test_a_struct_and_its_fields_have_defaults_of_their_own(self, vector):
        default = None if vector["point_default"] is None else ()
        read = [NestedField(1, "point", StructType(*self.POINT), initial_default=default)]
        if vector["data"] == "missing":
            result = project(read, [field("b", pa.int32(), 9)], [pa.array([1])])
        else:
            ids = {"x": 2, "y": 3}
            held = pa.struct([field(name, pa.int32(), ids[name]) for name in vector["data"]])
            result = project(read, [field("point", held, 1)], [pa.array([vector["data"]], held)])
        assert result.to_pylist() == [{"point": vector["result"]}]

    @pytest.mark.spec("PRJ-14")
    def test_selecting_a_leaf_reads_only_that_leaf_and_keeps_null_structs(self):
        held = pa.struct([field("x", pa.int32(), 2), field("y", pa.string(), 3)])
        fields = [field("s", held, 1)]
        read = [NestedField(1, "s", StructType(NestedField(3, "why", "string")))]
        projection = ColumnProjection.resolve(Schema(*read), pa.schema(fields))
        assert str(projection.file_columns.field("s").type) == "struct<y: string>"
        rows = [{"x": 1, "y": "a"}, None, {"x": None, "y": None}]
        result = project(read, fields, [pa.array(rows, held)])
        assert result.column("s").to_pylist() == [{"why": "a"}, None, {"why": None}]

    @pytest.mark.spec("PRJ-15")
    def test_a_struct_of_which_only_a_missing_field_is_asked_still_states_null_structs(self):
        held = pa.struct([field("text", pa.string(), 2), field("small", pa.bool_(), 3), field("n", pa.int64(), 4)])
        fields = [field("s", held, 1)]
        read = [NestedField(1, "s", StructType(NestedField(9, "new", "int", initial_default=4)))]
        projection = ColumnProjection.resolve(Schema(*read), pa.schema(fields))
        assert str(projection.file_columns.field("s").type) == "struct<small: bool>", "the cheapest leaf carries it"
        rows = [{"text": "a", "small": None, "n": 1}, None]
        assert project(read, fields, [pa.array(rows, held)]).column("s").to_pylist() == [{"new": 4}, None]

    def test_fields_may_be_reordered_renamed_added_and_dropped_at_any_depth(self):
        inner = pa.struct([field("a", pa.int32(), 3), field("b", pa.string(), 4)])
        held = pa.struct([field("x", pa.int32(), 2), field("in", inner, 5), field("gone", pa.int8(), 6)])
        read_inner = StructType(
            NestedField(4, "bb", "string"), NestedField(7, "new", "date"), NestedField(3, "a", "long")
        )
        read = [NestedField(1, "s", StructType(NestedField(5, "inner", read_inner), NestedField(2, "x", "int")))]
        rows = [{"x": 1, "in": {"a": 2, "b": "q"}, "gone": 1}, {"x": 3, "in": None, "gone": 1}, None]
        result = project(read, [field("s", held, 1)], [pa.array(rows, held)])
        assert result.column("s").to_pylist() == [
            {"inner": {"bb": "q", "new": None, "a": 2}, "x": 1},
            {"inner": None, "x": 3},
            None,
        ]

    @pytest.mark.parametrize("start", [0, 1, 2, 9])
    def test_a_slice_of_a_batch_is_projected_as_its_rows_are(self, start):
        inner = pa.list_(field("element", pa.struct([field("a", pa.int32(), 3), field("b", pa.int32(), 4)]), 5))
        held = pa.struct([field("l", inner, 2), field("x", pa.int32(), 6)])
        rows = [{"l": [{"a": i, "b": -i}] * (i % 3), "x": None if i == 4 else i} if i % 4 else None for i in range(12)]
        element = StructType(NestedField(4, "b", "long"), NestedField(9, "c", "int"))
        read = [NestedField(1, "s", StructType(NestedField(6, "x", "int"), NestedField(2, "l", ListType(5, element))))]
        projection = ColumnProjection.resolve(Schema(*read), pa.schema([field("s", held, 1)]))
        kept = projection.file_columns.field("s").type
        pruned = pa.array([row and {"l": [{"b": e["b"]} for e in row["l"]], "x": row["x"]} for row in rows], kept)
        batch = pa.RecordBatch.from_arrays([pruned], schema=projection.file_columns).slice(start, 3)
        result = projection.apply(batch)
        result.validate(full=True)
        expected = [row and {"x": row["x"], "l": [{"b": e["b"], "c": None} for e in row["l"]]} for row in rows]
        assert result.column("s").to_pylist() == expected[start : start + 3]


class TestListsAndMaps:
    @pytest.mark.spec("PRJ-01", "PRJ-09")
    def test_structs_inside_lists_and_maps_are_projected_by_id(self):
        element = pa.struct([field("a", pa.int32(), 3), field("b", pa.int32(), 4)])
        held_list = pa.list_(field("item", element, 2))
        held_map = pa.map_(field("k", pa.string(), 6, False), field("v", element_with(7), 5))
        read = [
            NestedField(1, "l", ListType(2, StructType(NestedField(4, "bb", "long"), NestedField(9, "n", "int")))),
            NestedField(10, "m", MapType(6, StringType(), 5, StructType(NestedField(8, "b", "int")))),
        ]
        fields = [field("l", held_list, 1), field("m", held_map, 10)]
        projection = ColumnProjection.resolve(Schema(*read), pa.schema(fields))
        kept_list, kept_map = (each.type for each in projection.file_columns)
        assert str(kept_list.value_type) == "struct<b: int32>"
        assert str(kept_map.item_type) == "struct<b: int32>"
        lists = pa.array([[{"b": 1}, None], None, []], kept_list)
        maps = pa.array([[("x", {"b": 5}), ("y", None)], None, []], kept_map)
        result = projection.apply(pa.RecordBatch.from_arrays([lists, maps], schema=projection.file_columns))
        result.validate(full=True)
        assert result.column("l").to_pylist() == [[{"bb": 1, "n": None}, None], None, []]
        assert result.column("m").to_pylist() == [[("x", {"b": 5}), ("y", None)], None, []]
        assert result.schema.equals(schema_to_arrow(Schema(*read)), check_metadata=True)

    @pytest.mark.parametrize("make", [pa.large_list, lambda f: pa.list_(f, 2), pa.list_view])
    def test_other_kinds_of_list_are_read_as_lists(self, make):
        held = make(field("element", pa.int32(), 2))
        read = [NestedField(1, "l", ListType(2, LongType()))]
        result = project(read, [field("l", held, 1)], [pa.array([[1, 2], None, [3, None]], held)])
        assert result.column("l").to_pylist() == [[1, 2], None, [3, None]]

    @pytest.mark.spec("PARQ-17")
    def test_a_map_of_which_the_file_holds_only_keys_has_null_values(self):
        held = pa.list_(field("key", pa.string(), 2, False))
        read = [NestedField(1, "m", MapType(2, StringType(), 3, IntegerType()))]
        result = project(read, [field("m", held, 1)], [pa.array([["a", "b"], None, []], held)])
        assert result.column("m").to_pylist() == [[("a", None), ("b", None)], None, []]

    def test_another_structure_under_the_same_id_is_an_error_and_no_guess(self):
        read = [NestedField(1, "l", ListType(2, LongType()))]
        with pytest.raises(InvalidFile, match="'l'"):
            project(read, [field("l", pa.int64(), 1)], [pa.array([1])])
        with pytest.raises(InvalidFile, match="'s'"):
            project(
                [NestedField(1, "s", StructType(NestedField(2, "a", "int")))],
                [field("s", pa.int64(), 1)],
                [pa.array([1])],
            )


def element_with(first):
    return pa.struct([field("a", pa.int32(), first), field("b", pa.int32(), first + 1)])


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
        with pytest.raises(Unfit):
            variants_of(held)


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
    """Evolves a type: fields renamed, dropped, put into another order and added; states what a value becomes."""

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
