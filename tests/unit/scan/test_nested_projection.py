"""Structs, lists and maps of a file brought to the read schema, at any depth."""

import pyarrow as pa
import pytest
from column_projections import field, project
from icefield.errors import InvalidFile
from icefield.scan import ColumnProjection
from icefield.schema import Schema, schema_to_arrow
from icefield.types import IntegerType, ListType, LongType, MapType, NestedField, StringType, StructType
from vectors import VECTORS


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
