"""Every type, required and optional, at every place of a schema."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from icefield.abc import FileFormat
from icefield.schema import Schema, schema_to_arrow
from icefield.toolkit import child_fields, field_id
from icefield.types import IcebergType, ListType, LongType, MapType, NestedField, StringType, StructType

from icefield_testing.format_data import (
    EDGES,
    NESTED,
    NESTED_ROWS,
    PLACES,
    VERSION_3,
    array_of,
    flat_table,
    placed,
    table_of,
    tables,
)
from icefield_testing.formats.base import FormatChecks, examples


class TypeChecks(FormatChecks):
    """Checks of types, nullability and field ids."""

    @pytest.mark.parametrize("required", [True, False], ids=["required", "optional"])
    @pytest.mark.parametrize("kind", EDGES, ids=str)
    def test_every_primitive_type_reads_back(self, file_format: FileFormat, kind: IcebergType, required: bool) -> None:
        """If this fails, a value at the edge of that type changes on its way; see the types' table in the guide."""
        self.check_round_trip(file_format, *table_of(kind, EDGES[kind], required=required))

    @pytest.mark.parametrize("required", [True, False], ids=["required", "optional"])
    @pytest.mark.parametrize("kind", VERSION_3, ids=str)
    def test_every_type_of_version_3_reads_back(
        self, file_format: FileFormat, kind: IcebergType, required: bool
    ) -> None:
        """If this fails, a type that the format cannot hold is not declared in ``unsupported``, or not refused."""
        values = VERSION_3[kind]
        required = required and None not in values
        self.check_round_trip(file_format, *table_of(kind, values, required=required))

    @pytest.mark.parametrize("required", [True, False], ids=["required", "optional"])
    @pytest.mark.parametrize("place", PLACES)
    @pytest.mark.parametrize("kind", [*EDGES, *VERSION_3], ids=str)
    def test_every_type_reads_back_at_every_place(
        self, file_format: FileFormat, kind: IcebergType, place: str, required: bool
    ) -> None:
        """If this fails, a type is converted at the top level only: as a field, an element, a key, or a value."""
        made = placed(kind, place, required=required)
        if made is None:
            pytest.skip("the type cannot be there")
        if (type(kind), place) in self.unsupported_places:
            self.check_refused(file_format, made[0])
            return
        self.check_round_trip(file_format, *made)

    @pytest.mark.parametrize("required", [True, False], ids=["required", "optional"])
    @pytest.mark.parametrize("shape", NESTED)
    def test_every_nested_shape_reads_back(self, file_format: FileFormat, shape: str, required: bool) -> None:
        """If this fails, look at null against empty, at nulls inside, and at required elements."""
        rows = [row for row in NESTED_ROWS[shape] if not (required and row is None)]
        self.check_round_trip(file_format, *table_of(NESTED[shape], rows, required=required))

    @examples(25)
    @given(made=tables())
    def test_any_table_reads_back(self, file_format: FileFormat, made: tuple[Schema, pa.Table]) -> None:
        """If this fails, Hypothesis prints the smallest schema and rows that do not survive."""
        self.check_round_trip(file_format, *made)

    def test_a_deeply_nested_column_reads_back(self, file_format: FileFormat) -> None:
        """If this fails, depth is bounded below what a table may have, or counted wrongly."""
        kind: IcebergType = StringType()
        row: object = "deep"
        for level in range(10, 34, 2):
            kind = ListType(level, StructType(NestedField(level + 1, "x", kind)))
            row = [{"x": row}, None, {"x": None}]
        self.check_round_trip(file_format, *table_of(kind, [row, [], None], required=False))

    def test_order_and_siblings_are_kept(self, file_format: FileFormat) -> None:
        """If this fails, entries of a map or elements of a list come sorted, or two fields of one type are taken for
        each other."""
        pair = StructType(NestedField(11, "a", LongType()), NestedField(12, "b", LongType()))
        column = StructType(
            NestedField(21, "m", MapType(22, StringType(), 23, LongType())),
            NestedField(24, "k", MapType(25, LongType(), 26, LongType())),
            NestedField(27, "l", ListType(28, StringType())),
            NestedField(29, "first", pair),
            NestedField(30, "second", StructType(NestedField(31, "a", LongType()), NestedField(32, "b", LongType()))),
        )
        rows = [
            {
                "m": [("b", 2), ("a", 1), ("c", 3)],
                "k": [(3, 1), (1, 3), (2, 2)],
                "l": ["b", "a", "b"],
                "first": {"a": at, "b": 100 + at},
                "second": {"a": 200 + at, "b": 300 - at},
            }
            for at in range(5)
        ]
        self.check_round_trip(file_format, *table_of(column, rows, required=False))

    def test_what_is_below_nulls_does_not_come_back(self, file_format: FileFormat) -> None:
        """If this fails, values of a struct's children are written although the struct is null."""
        schema = Schema(
            NestedField(1, "n", LongType(), required=True),
            NestedField(2, "s", StructType(NestedField(3, "x", LongType()), NestedField(4, "y", StringType()))),
            NestedField(5, "l", ListType(6, LongType())),
        )
        arrow = schema_to_arrow(schema)
        fields = [arrow.field("s").type.field(i) for i in range(2)]
        hidden = pa.StructArray.from_arrays(
            [pa.array([1, 2, 3, 4]), pa.array(["a", "b", "c", "d"])],
            fields=fields,
            mask=pa.array([False, True, False, True]),
        )
        lists = pa.ListArray.from_arrays(
            pa.array([0, 2, 4, 4, 6], pa.int32()), pa.array(range(6)), arrow.field("l").type
        )
        below = pa.ListArray.from_buffers(
            arrow.field("l").type, 4, [pa.py_buffer(b"\x0d"), lists.buffers()[1]], children=[lists.values]
        )
        table = pa.Table.from_arrays([pa.array(range(4)), hidden, below], schema=arrow)
        location, _ = self.write(file_format, schema, table)
        got = self.read_as(file_format, location, schema)
        assert got.column("s").to_pylist() == [{"x": 1, "y": "a"}, None, {"x": 3, "y": "c"}, None]
        assert got.column("l").to_pylist() == [[0, 1], None, [], [4, 5]]

    def test_slices_of_batches_are_written_as_they_are(self, file_format: FileFormat) -> None:
        """If this fails, a buffer is written from its beginning, and not from the slice's offset."""
        schema, table = flat_table(100)
        batch = table.combine_chunks().to_batches()[0]
        part = pa.Table.from_batches([batch.slice(13, 29), batch.slice(60, 0), batch.slice(71)])
        location, _ = self.write(file_format, schema, part)
        self.check_equal(self.read_all(file_format, location, schema), part)

    # -- what the file states itself

    def test_ids_are_kept_at_every_level(self, file_format: FileFormat) -> None:
        """If this fails, ids of list elements, map keys, map values or nested fields are not stored in the file."""
        for kind in NESTED.values():
            schema = Schema(NestedField(1, "n", LongType(), required=True), NestedField(2, "v", kind))
            _, table = table_of(kind, [], required=False)
            location, _ = self.write(file_format, schema, table)
            with self.open(file_format, location) as reader:
                assert [field_id(field) for field in _fields(reader.schema)] == [
                    field_id(field) for field in _fields(table.schema)
                ]

    @pytest.mark.parametrize("required", [True, False], ids=["required", "optional"])
    def test_what_is_required_is_kept_at_every_level(self, file_format: FileFormat, required: bool) -> None:
        """If this fails, the file does not say whether elements, values and nested fields may be null."""
        for kind in NESTED.values():
            schema, table = table_of(kind, [], required=required)
            location, _ = self.write(file_format, schema, table)
            with self.open(file_format, location) as reader:
                assert [(field.name, field.nullable) for field in _fields(reader.schema)] == [
                    (field.name, field.nullable) for field in _fields(table.schema)
                ]

    @pytest.mark.parametrize("name", ["a b", "a.b", "ü", "日本", "1", "a-b", "", "select", "x" * 300, "A", "_", "$"])
    def test_a_column_may_have_any_name(self, file_format: FileFormat, name: str) -> None:
        """If this fails, a name that the format cannot spell is not sanitised on writing and stated on reading."""
        schema = Schema(
            NestedField(1, name, LongType()), NestedField(2, "s", StructType(NestedField(3, name, StringType())))
        )
        arrow = schema_to_arrow(schema)
        columns = [array_of(arrow.field(0).type, [1, None]), array_of(arrow.field(1).type, [{name: "x"}, None])]
        table = pa.Table.from_arrays(columns, schema=arrow)
        location, _ = self.write(file_format, schema, table)
        self.check_equal(self.read_as(file_format, location, schema), table)

    def test_names_that_differ_in_case_are_two_columns(self, file_format: FileFormat) -> None:
        """If this fails, columns are looked up without regard to case."""
        schema = Schema(NestedField(1, "a", LongType()), NestedField(2, "A", LongType()))
        table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], schema=schema_to_arrow(schema))
        location, _ = self.write(file_format, schema, table)
        self.check_equal(self.read_as(file_format, location, schema), table)
        later = Schema(NestedField(2, "a", LongType()))
        assert self.read_as(file_format, location, later).to_pydict() == {"a": [2]}


def _fields(parent: pa.Schema | pa.DataType) -> Iterator[pa.Field]:
    """Every field at every level."""
    for field in parent if isinstance(parent, pa.Schema) else child_fields(parent):
        yield field
        yield from _fields(field.type)
