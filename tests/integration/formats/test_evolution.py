"""Every change of a schema over files that were written before it: all file formats give the same rows."""

import datetime as dt
import math
import operator
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from foreign_files import foreign_file
from icefield.errors import InvalidFile, InvalidSchema
from icefield.schema import parse_name_mapping, schema_to_arrow
from icefield.types import ListType, MapType, NestedField, StructType, UnknownType
from icefield.writing import write_batches

D = Decimal
EPOCH = dt.datetime(1970, 1, 1)


def put(table, *rows):
    """Append rows; columns without a name here are null. Gives the table."""
    table.append(pa.Table.from_pylist(list(rows), schema=schema_to_arrow(table.schema())))
    return table


def give(table, *rows):
    """Append rows with only the named columns; the other columns get their defaults."""
    arrow = schema_to_arrow(table.schema())
    table.append(pa.Table.from_pylist(list(rows), schema=pa.schema([arrow.field(name) for name in rows[0]])))
    return table


def check(table, expected, **filters):
    """Check that all ways of reading give the expected rows, and that filters match the rows with the given numbers."""
    file_format = table.properties["write.format.default"]
    assert {task.file.file_format.lower() for task in table.scan().plan_files()} == {file_format}
    assert table.scan().to_arrow().to_pylist() == expected
    assert table.scan().count() == len(expected)
    for name in table.schema().column_names:
        found = table.scan(selected_fields=(name,)).to_arrow().to_pylist()
        if "." not in name:
            assert found == [{name: row[name]} for row in expected]
    for text, numbers in filters.get("filters", {}).items():
        wanted = [expected[number] for number in numbers]
        assert table.scan(text).to_arrow().to_pylist() == wanted, text
        assert table.scan(text).count() == len(numbers), text


class TestNamesAndPlaces:
    @pytest.mark.spec("PRJ-01", "SCH-03", "ORC-13", "AVRO-26")
    def test_a_rename_at_any_depth(self, make):
        inner = StructType(NestedField(11, "x", "int"), NestedField(12, "y", "string"))
        table = make(
            NestedField(1, "a", "int"),
            NestedField(2, "s", inner),
            NestedField(3, "l", ListType(4, inner)),
            NestedField(5, "m", MapType(6, "string", 7, inner)),
        )
        put(table, {"a": 1, "s": {"x": 2, "y": "p"}, "l": [{"x": 3, "y": "q"}, None], "m": [("k", {"x": 4, "y": "r"})]})
        with table.update_schema() as update:
            update.rename_column("a", "alpha")
            update.rename_column(("s", "x"), "ex")
            update.rename_column("s", "struct")
            update.rename_column(("l", "element", "y"), "why")
            update.rename_column(("m", "value", "x"), "ex")
        expected = {"alpha": 1, "struct": {"ex": 2, "y": "p"}, "l": [{"x": 3, "why": "q"}, None],
                    "m": [("k", {"ex": 4, "y": "r"})]}  # fmt: skip
        check(table, [expected], filters={"alpha = 1": [0], "struct.ex = 2": [0], "struct.ex > 2": [], "alpha > 1": []})

    @pytest.mark.spec("PRJ-01", "SCH-03")
    def test_two_names_that_change_places(self, make):
        table = put(make(NestedField(1, "a", "int"), NestedField(2, "b", "int")), {"a": 1, "b": 2})
        with table.update_schema() as update:
            update.rename_column("a", "c")
        with table.update_schema() as update:
            update.rename_column("b", "a")
        with table.update_schema() as update:
            update.rename_column("c", "b")
        put(table, {"b": 3, "a": 4})
        check(table, [{"b": 1, "a": 2}, {"b": 3, "a": 4}], filters={"a = 1": [], "a = 2": [0], "b in (1, 3)": [0, 1]})

    @pytest.mark.spec("PRJ-03", "SCH-06", "SCH-07", "SCH-08")
    def test_a_column_that_is_dropped_and_added_again_under_its_name_is_another(self, make):
        inner = StructType(NestedField(11, "x", "int"), NestedField(12, "y", "string"))
        table = make(NestedField(1, "n", "int"), NestedField(2, "a", "int"), NestedField(3, "s", inner))
        put(table, {"n": 1, "a": 7, "s": {"x": 8, "y": "old"}})
        with table.update_schema() as update:
            update.delete_column("a")
            update.delete_column(("s", "x"))
        with table.update_schema() as update:
            update.add_column("a", "string")
            update.add_column(("s", "x"), "double")
        put(table, {"n": 2, "a": "new", "s": {"x": 0.5, "y": None}})
        expected = [{"n": 1, "s": {"y": "old", "x": None}, "a": None}, {"n": 2, "s": {"y": None, "x": 0.5}, "a": "new"}]
        check(table, expected, filters={"a is null": [0], "a = 'new'": [1], "s.x is null": [0], "s.x = 0.5": [1]})

    @pytest.mark.spec("PRJ-03", "PRJ-15")
    def test_a_struct_that_lost_all_that_it_had_is_still_null_or_not(self, make):
        table = make(NestedField(1, "n", "int"), NestedField(2, "s", StructType(NestedField(3, "x", "int"))))
        put(table, {"n": 1, "s": {"x": 1}}, {"n": 2, "s": None}, {"n": 3, "s": {"x": None}})
        with table.update_schema() as update:
            update.add_column(("s", "y"), "string")
            update.delete_column(("s", "x"))
        rows = [{"n": 1, "s": {"y": None}}, {"n": 2, "s": None}, {"n": 3, "s": {"y": None}}]
        check(table, rows, filters={"s is null": [1], "s is not null": [0, 2], "s.y is null": [0, 1, 2]})

    @pytest.mark.spec("PRJ-01", "SCH-09")
    def test_columns_in_another_order_at_any_depth(self, make):
        inner = StructType(*(NestedField(10 + at, name, "int") for at, name in enumerate("abc")))
        table = make(NestedField(1, "p", "int"), NestedField(2, "s", inner), NestedField(3, "l", ListType(4, inner)))
        row = {"p": 1, "s": {"a": 1, "b": 2, "c": 3}, "l": [{"a": 4, "b": 5, "c": 6}]}
        put(table, row)
        with table.update_schema() as update:
            update.move_first("l")
            update.move_after("p", "s")
            update.move_first(("s", "c"))
            update.move_before(("l", "element", "b"), ("l", "element", "a"))
        put(table, row)
        assert table.schema().as_struct().fields[0].name == "l"
        moved = table.scan().to_arrow()
        assert [field.name for field in moved.schema.field("s").type] == ["c", "a", "b"]
        assert [field.name for field in moved.schema.field("l").type.value_type] == ["b", "a", "c"]
        check(table, [row, row], filters={"s.c = 3": [0, 1], "s.a = 3": []})


PROMOTIONS = {
    "int to long": ("int", "long", [-(2**31), 2**31 - 1, 0], [2**62, -(2**62)], "{} = 2147483647", [1]),
    "float to double": ("float", "double", [1.5, -math.inf, 0.1], [1e300, 0.1], "{} > 1.0", [0, 3]),
    "decimal within int32": ("decimal(4,2)", "decimal(9,2)", [D("12.34"), D("-99.99")], [D("1234567.89")],
                             "{} < 0", [1]),
    "decimal to int64": ("decimal(9,2)", "decimal(18,2)", [D("1234567.89"), D("-0.01")],
                         [D("1234567890123456.78")], "{} = 1234567.89", [0]),
    "decimal to fixed": ("decimal(9,2)", "decimal(38,2)", [D("1234567.89"), D("-0.01")],
                         [D("123456789012345678901234567890123456.78")], "{} > 0", [0, 2]),
    "decimal of longer fixed": ("decimal(19,0)", "decimal(38,0)", [D(-(10**18)), D(10**18)], [D(10**37)],
                                "{} < 5", [0]),
}  # fmt: skip
PROMOTIONS_OF_3 = {
    "date to timestamp": ("date", "timestamp", [dt.date(1969, 12, 31), dt.date(2024, 2, 29)],
                          [dt.datetime(2024, 2, 29, 12)], "{} >= '2024-02-29T00:00:00'", [1, 2]),
    "unknown to string": ("unknown", "string", [None, None], ["a"], "{} is null", [0, 1]),
    "unknown to long": ("unknown", "long", [None], [5], "{} > 4", [1]),
    "unknown to decimal": ("unknown", "decimal(20,3)", [None], [D("5.125")], "{} > 4", [1]),
}  # fmt: skip
EVERY_PROMOTION = [(2, *case) for case in PROMOTIONS.items()] + [
    (3, *case) for case in {**PROMOTIONS, **PROMOTIONS_OF_3}.items()
]


def seen(value, new):
    """The value that an old value becomes under the new type."""
    if new == "timestamp" and value is not None and not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time())
    return pa.scalar(value, pa.float32()).as_py() if new == "double" and value == 0.1 else value


class TestPromotions:
    @pytest.mark.parametrize(("version", "name", "case"), EVERY_PROMOTION, ids=lambda part: str(part)[:30])
    @pytest.mark.spec("SCH-10", "SCH-11", "SCH-12", "SCH-14", "PRJ-16", "PARQ-23", "MET-23", "AVRO-26", "ORC-13")
    def test_a_promotion_at_any_depth(self, make, version, name, case):
        old, new, before, after, text, matching = case
        kind = UnknownType() if old == "unknown" else old
        fields = [NestedField(1, "n", "int"), NestedField(2, "v", kind), NestedField(3, "w", kind)]
        places = [("v",)]
        if old != "unknown":  # a list, map or struct of nothing but nulls has no form in some formats
            inner = StructType(NestedField(11, "v", kind), NestedField(12, "t", "string"))
            fields += [
                NestedField(4, "s", inner),
                NestedField(5, "l", ListType(6, kind)),
                NestedField(7, "m", MapType(8, "string", 9, kind)),
                NestedField(10, "d", ListType(13, MapType(14, "int", 15, ListType(16, inner)))),
            ]
            places += [("s", "v"), ("l", "element"), ("m", "value"), ("d", "element", "value", "element", "v")]
        table = make(*fields, version=version)

        def row(number, value):
            made = {"n": number, "v": value, "w": None}
            if old != "unknown":
                made |= {"s": {"v": value, "t": "x"}, "l": [value, None], "m": [("k", value), ("z", None)],
                         "d": [[(1, [{"v": value, "t": None}, None])], None]}  # fmt: skip
            return made

        put(table, *(row(number, value) for number, value in enumerate(before)))
        with table.update_schema() as update:
            for path in places:
                update.update_column(path, new)
            update.delete_column("w")
        put(table, *(row(number, value) for number, value in enumerate(after, start=len(before))))
        expected = [row(number, seen(value, new)) for number, value in enumerate(before)]
        expected += [row(number, value) for number, value in enumerate(after, start=len(before))]
        expected = [{name: value for name, value in made.items() if name != "w"} for made in expected]
        filters = {text.format("v"): matching}
        if old != "unknown":
            filters[text.format("s.v")] = matching
        check(table, expected, filters=filters)

    @pytest.mark.spec("SCH-14")
    def test_a_date_that_no_nanosecond_reaches_is_an_error_and_no_other_moment(self, make):
        table = put(make(NestedField(1, "d", "date"), version=3), {"d": dt.date(1500, 1, 1)})
        with table.update_schema() as update:
            update.update_column("d", "timestamp_ns")
        with pytest.raises(InvalidFile):
            table.scan().to_arrow()

    @pytest.mark.spec("SCH-23")
    def test_keys_of_maps_never_change(self, make):
        table = make(NestedField(1, "m", MapType(2, "int", 3, "int")))
        with pytest.raises(InvalidSchema, match="keys never change"):
            table.update_schema().update_column(("m", "key"), "long")

    @pytest.mark.parametrize(
        ("kind", "keys"),
        [("int", [1, -1]), ("date", [dt.date(1969, 1, 1)]), ("decimal(20,2)", [D("1.25")]), ("uuid", [bytes(16)]),
         ("string", ["", "ü"]), ("timestamp", [EPOCH - dt.timedelta(microseconds=1)]),
         (StructType(NestedField(20, "a", "int"), NestedField(21, "b", "string")), [{"a": 1, "b": None}])],
        ids=str,
    )  # fmt: skip
    def test_values_evolve_under_keys_of_any_type(self, make, kind, keys):
        inner = StructType(NestedField(11, "x", "int"))
        table = make(NestedField(1, "m", MapType(2, kind, 3, inner)))
        put(table, {"m": [(key, {"x": 5}) for key in keys]}, {"m": None}, {"m": []})
        with table.update_schema() as update:
            update.update_column(("m", "value", "x"), "long")
            update.add_column(("m", "value", "y"), "string")
            update.rename_column("m", "map")
        rows = [{"map": [(key, {"x": 5, "y": None}) for key in keys]}, {"map": None}, {"map": []}]
        check(table, rows)


class TestRequiredAndDefaults:
    def test_what_was_required_becomes_optional(self, make):
        inner = StructType(NestedField(11, "x", "int", required=True))
        table = make(
            NestedField(1, "n", "int", required=True),
            NestedField(2, "s", inner, required=True),
            NestedField(3, "l", ListType(4, "int", element_required=True)),
            NestedField(5, "m", MapType(6, "string", 7, "int", value_required=True)),
        )
        put(table, {"n": 1, "s": {"x": 1}, "l": [1], "m": [("k", 1)]})
        with table.update_schema() as update:
            for path in ("n", "s", ("s", "x"), ("l", "element"), ("m", "value")):
                update.make_column_optional(path)
        put(table, {"n": None, "s": {"x": None}, "l": [None], "m": [("k", None)]}, {})
        rows = [{"n": 1, "s": {"x": 1}, "l": [1], "m": [("k", 1)]},
                {"n": None, "s": {"x": None}, "l": [None], "m": [("k", None)]},
                {"n": None, "s": None, "l": None, "m": None}]  # fmt: skip
        check(table, rows, filters={"n is null": [1, 2], "s.x is null": [1, 2], "s is null": [2], "n = 1": [0]})

    @pytest.mark.spec("DEF-01", "DEF-02", "DEF-03", "DEF-04", "DEF-07", "DEF-15", "PRJ-06")
    def test_older_rows_have_the_initial_default_and_later_ones_the_write_default_of_their_time(self, make):
        table = put(make(NestedField(1, "n", "int"), version=3), {"n": 1})
        with table.update_schema() as update:
            update.add_column("d", "int", default_value=7)
        give(table, {"n": 2})
        with table.update_schema() as update:
            update.set_default_value("d", 8)
        give(table, {"n": 3})
        put(table, {"n": 4, "d": None}, {"n": 5, "d": 9})
        rows = [{"n": n, "d": d} for n, d in ((1, 7), (2, 7), (3, 8), (4, None), (5, 9))]
        check(table, rows, filters={"d = 7": [0, 1], "d > 7": [2, 4], "d is null": [3], "d is not null": [0, 1, 2, 4]})

    @pytest.mark.parametrize(
        ("kind", "default"),
        [("boolean", True), ("int", -5), ("long", 2**40), ("float", 0.5), ("double", -0.25),
         ("decimal(9,2)", D("1.50")), ("date", dt.date(1969, 12, 31)), ("time", dt.time(23, 59, 59, 999_999)),
         ("timestamp", EPOCH - dt.timedelta(microseconds=1)), ("timestamptz", dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
         ("string", "é"), ("uuid", bytes(range(16))), ("fixed[3]", b"abc"), ("binary", b"\0\xff")],
    )  # fmt: skip
    @pytest.mark.spec("DEF-01", "DEF-05", "DEF-08", "DEF-10")
    def test_defaults_of_every_type_at_any_depth(self, make, kind, default):
        inner = StructType(NestedField(11, "x", "int"))
        table = make(NestedField(1, "s", inner), NestedField(2, "l", ListType(3, inner)), version=3)
        put(table, {"s": {"x": 1}, "l": [{"x": 2}, None]}, {"s": None, "l": None})
        with table.update_schema() as update:
            update.add_column("v", kind, required=True, default_value=default)
            update.add_column(("s", "v"), kind, default_value=default)
            update.add_column(("l", "element", "v"), kind, default_value=default)
        both = {"x": 1, "v": default}
        rows = [{"s": both, "l": [{"x": 2, "v": default}, None], "v": default}, {"s": None, "l": None, "v": default}]
        check(table, rows, filters={"v is null": [], "s.v is null": [1], "v is not null": [0, 1]})

    @pytest.mark.spec("DEF-14")
    def test_a_default_follows_the_promotion_of_its_column(self, make):
        table = put(make(NestedField(1, "n", "int"), version=3), {"n": 1})
        with table.update_schema() as update:
            update.add_column("i", "int", default_value=7)
            update.add_column("d", "date", default_value=dt.date(2020, 2, 29))
        put(table, {"n": 2, "i": 8, "d": dt.date(1969, 12, 31)})
        with table.update_schema() as update:
            update.update_column("i", "long")
            update.update_column("d", "timestamp")
        rows = [{"n": 1, "i": 7, "d": dt.datetime(2020, 2, 29)}, {"n": 2, "i": 8, "d": dt.datetime(1969, 12, 31)}]
        check(table, rows, filters={"i = 7": [0], "d < '1970-01-01T00:00:00'": [1]})


class TestForeignFiles:
    """Files without ids, added where they are."""

    def adopt(self, make, file_format, fields, mapping, tables, **given):
        properties = {"schema.name-mapping.default": parse_name_mapping(mapping).to_string()}
        table = make(*fields, properties=properties, **given)
        table.add_files([foreign_file(file_format, each) for each in tables])
        return table

    @pytest.mark.spec("PRJ-05", "PRJ-07", "PRJ-08", "PRJ-09", "PRJ-10", "PRJ-11")
    def test_a_name_mapping_gives_columns_their_meaning(self, make, file_format):
        mapping = [
            {"field-id": 1, "names": ["id", "record_id"]},
            {"names": ["junk"]},
            {"field-id": 3, "names": ["st"], "fields": [{"field-id": 4, "names": ["x", "old_x"]}]},
            {"field-id": 6, "names": ["ls"], "fields": [{"field-id": 7, "names": ["element"], "fields": [
                {"field-id": 8, "names": ["v"]}]}]},
            {"field-id": 9, "names": ["mp"], "fields": [{"field-id": 10, "names": ["key"]},
                                                        {"field-id": 11, "names": ["value"]}]},
            {"field-id": 12, "names": []},
        ]  # fmt: skip
        fields = [
            NestedField(1, "number", "long"),
            NestedField(3, "s", StructType(NestedField(4, "x", "double"), NestedField(5, "y", "string"))),
            NestedField(6, "l", ListType(7, StructType(NestedField(8, "w", "int")))),
            NestedField(9, "m", MapType(10, "string", 11, "int")),
            NestedField(12, "nine", "int"),
        ]
        table = make(*fields)
        ids = {field.name: field.field_id for field in table.schema().fields}
        assert list(ids.values()) == [1, 2, 3, 4, 5]  # given anew, level by level
        renumbered = self.renumbered(mapping, table.schema())
        with table.transaction() as change:
            change.set_properties({"schema.name-mapping.default": parse_name_mapping(renumbered).to_string()})
        int32, ls = pa.int32(), pa.list_(pa.struct([("v", pa.int32()), ("z", pa.int32())]))
        first = pa.table({
            "junk": pa.array([b"?", b"?"]), "id": pa.array([5, 6], int32),
            "st": pa.array([{"x": 1.5, "y": "?"}, None], pa.struct([("x", pa.float32()), ("y", pa.string())])),
            "ls": pa.array([[{"v": 1, "z": 2}, None], []], ls),
            "mp": pa.array([[("k", 7)], None], pa.map_(pa.string(), int32)),
        })  # fmt: skip
        second = pa.table({
            "record_id": pa.array([7], pa.int64()),
            "st": pa.array([{"old_x": 2.5}], pa.struct([("old_x", pa.float64())])),
        })  # fmt: skip
        table.add_files([foreign_file(file_format, each) for each in (first, second)])
        rows = [
            {"number": 5, "s": {"x": 1.5, "y": None}, "l": [{"w": 1}, None], "m": [("k", 7)], "nine": None},
            {"number": 6, "s": None, "l": [], "m": None, "nine": None},
            {"number": 7, "s": {"x": 2.5, "y": None}, "l": None, "m": None, "nine": None},
        ]
        check(
            table, rows, filters={"number > 5": [1, 2], "s.x = 2.5": [2], "s.x is null": [1], "nine is null": [0, 1, 2]}
        )

    def renumbered(self, mapping, schema):
        """The mapping with the field ids that the table assigned, found by the order of the columns."""
        given = sorted(schema.field_ids)
        paths = {1: "number", 3: "s", 4: "s.x", 6: "l", 7: "l.element", 8: "l.element.w", 9: "m", 10: "m.key",
                 11: "m.value", 12: "nine"}  # fmt: skip
        assert len(given) >= len(paths)

        def one(entry):
            made = dict(entry)
            if "field-id" in made:
                made["field-id"] = schema.find_field(paths[made["field-id"]]).field_id
            if "fields" in made:
                made["fields"] = [one(inner) for inner in made["fields"]]
            return made

        return [one(entry) for entry in mapping]

    @pytest.mark.spec("PRJ-08")
    def test_a_dot_in_a_name_is_part_of_it(self, make, file_format):
        if file_format == "avro":
            pytest.skip("Avro has no names with dots")
        mapping = [{"field-id": 1, "names": ["a.b"]}, {"field-id": 2, "names": ["a"],
                                                       "fields": [{"field-id": 3, "names": ["b"]}]}]  # fmt: skip
        fields = [NestedField(1, "dotted", "int"), NestedField(2, "a", StructType(NestedField(3, "b", "int")))]
        held = pa.table({"a": pa.array([{"b": 1}], pa.struct([("b", pa.int32())])), "a.b": pa.array([2], pa.int32())})
        table = self.adopt(make, file_format, fields, mapping, [held])
        check(table, [{"dotted": 2, "a": {"b": 1}}], filters={"dotted = 2": [0], "a.b = 2": [], "a.b = 1": [0]})

    @pytest.mark.spec("PRJ-06", "PRJ-10", "SCH-29")
    def test_columns_that_are_renamed_added_or_promoted_later(self, make, file_format):
        mapping = [{"field-id": 1, "names": ["n"]}, {"field-id": 2, "names": ["t"]}]
        fields = [NestedField(1, "n", "int"), NestedField(2, "t", "string")]
        held = pa.table({"n": pa.array([1, 2], pa.int32()), "t": ["a", None]})
        table = self.adopt(make, file_format, fields, mapping, [held], version=3)
        with table.update_schema() as update:
            update.rename_column("n", "number")
            update.update_column("number", "long")
            update.add_column("d", "int", default_value=7)
            update.delete_column("t")
        with table.update_schema() as update:
            update.add_column("t", "string")
        table.add_files([foreign_file(file_format, pa.table({"n": pa.array([3], pa.int32())}))])
        put(table, {"number": 2**40, "d": 1, "t": "new"})
        rows = [{"number": 1, "d": 7, "t": None}, {"number": 2, "d": 7, "t": None}, {"number": 3, "d": 7, "t": None},
                {"number": 2**40, "d": 1, "t": "new"}]  # fmt: skip
        found = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["number"])
        assert found == rows
        for text, numbers in {"number < 3": [0, 1], "d = 7": [0, 1, 2], "t is null": [0, 1, 2], "t = 'a'": []}.items():
            wanted = [rows[number] for number in numbers]
            assert sorted(table.scan(text).to_arrow().to_pylist(), key=lambda row: row["number"]) == wanted

    @pytest.mark.spec("PRJ-13", "PRJ-20")
    def test_without_a_mapping_nothing_is_guessed(self, make, file_format):
        table = make(NestedField(1, "n", "int"))
        table.add_files([foreign_file(file_format, pa.table({"n": pa.array([1], pa.int32())}))])
        assert table.scan().to_arrow().to_pylist() == [{"n": 1}]  # one was stored with the files
        with table.transaction() as change:
            change.remove_properties("schema.name-mapping.default")
        with pytest.raises(InvalidFile, match="no field ids"):
            table.scan().to_arrow()

    @pytest.mark.spec("PRJ-12")
    def test_a_file_with_ids_is_never_read_by_name(self, make):
        table = put(make(NestedField(1, "a", "int"), NestedField(2, "b", "int")), {"a": 1, "b": 2})
        misleading = [{"field-id": 1, "names": ["b"]}, {"field-id": 2, "names": ["a"]}]
        with table.transaction() as change:
            change.set_properties({"schema.name-mapping.default": parse_name_mapping(misleading).to_string()})
        check(table, [{"a": 1, "b": 2}])

    @pytest.mark.spec("MET-01", "MET-02", "MET-03", "MET-05", "MET-06")
    def test_statistics_of_an_added_file_leave_no_matching_row_out(self, make, file_format):
        mapping = [{"field-id": at + 1, "names": [name]} for at, name in enumerate(("n", "f", "t", "d", "m"))]
        kinds = ("long", "double", "string", "date", "timestamp")
        fields = [NestedField(at + 1, name, kind) for at, (name, kind) in enumerate(zip("nftdm", kinds, strict=True))]
        rows = [{"n": n, "f": math.nan if n == 3 else -0.0 if n == 0 else n / 2, "t": "ü" * n if n % 3 else None,
                 "d": dt.date(1969, 12, 28) + dt.timedelta(days=n),
                 "m": EPOCH + dt.timedelta(microseconds=999_999 * (n - 4))} for n in range(9)]  # fmt: skip
        schema = pa.schema([("n", pa.int64()), ("f", pa.float64()), ("t", pa.string()), ("d", pa.date32()),
                            ("m", pa.timestamp("us"))])  # fmt: skip
        held = [pa.Table.from_pylist(rows[start : start + 3], schema=schema) for start in (0, 3, 6)]
        table = self.adopt(make, file_format, fields, mapping, held)
        checks = {"n": range(9), "f": [0.0, 0.5, 4.0], "t": ["ü", "üü", "zz"]}
        for name, values in checks.items():
            for value in values:
                shown = f"'{value}'" if name == "t" else value
                for op, test in (("=", operator.eq), ("<", operator.lt), (">=", operator.ge)):
                    wanted = [row["n"] for row in rows if row[name] is not None and test(row[name], value)]
                    found = table.scan(f"{name} {op} {shown}").to_arrow()["n"].to_pylist()
                    assert sorted(set(found) | {3}) == sorted(set(wanted) | {3}), (name, op, value)
        for row in rows:
            assert table.scan(f"m = '{row['m'].isoformat()}'").to_arrow()["n"].to_pylist() == [row["n"]]
            assert table.scan(f"d = '{row['d'].isoformat()}'").to_arrow()["n"].to_pylist() == [row["n"]]
        assert table.scan("f is nan").to_arrow()["n"].to_pylist() == [3]
        assert table.scan("t is null").count() == 3


class TestPartitionValues:
    @pytest.mark.spec("PRJ-04", "PRJ-06")
    def test_a_column_that_files_lack_comes_from_their_partition(self, make, file_format):
        """With folders as in Hive, the value is only in the path; it takes precedence over a default."""
        table = make(NestedField(1, "n", "int"), NestedField(2, "p", "string"), partition_spec=["p"], version=3)
        held = pa.table({"n": pa.array([1, 2], pa.int32())})
        mapping = [{"field-id": 1, "names": ["n"]}, {"field-id": 2, "names": ["p"]}]
        with table.transaction() as change:
            change.set_properties({"schema.name-mapping.default": parse_name_mapping(mapping).to_string()})
        (file,) = self.written(table)
        location = foreign_file(file_format, held)
        foreign = replace(file, file_path=location, record_count=2, file_size_in_bytes=table.io.stat(location).size,
                          split_offsets=None, lower_bounds={}, upper_bounds={}, value_counts={}, null_value_counts={},
                          nan_value_counts={}, column_sizes={}, partition=("folder",))  # fmt: skip
        with table.transaction() as change:
            change.append_files([foreign])
        rows = [{"n": 1, "p": "folder"}, {"n": 2, "p": "folder"}]
        check(table, rows, filters={"p = 'folder'": [0, 1], "p = 'other'": [], "p = 'folder' and n = 2": [1]})

    def written(self, table):
        rows = pa.Table.from_pylist([{"n": 1, "p": "x"}], schema=schema_to_arrow(table.schema()))
        return write_batches(table.write_context(), rows)

    def test_partition_columns_evolve_as_others_do(self, make):
        table = make(NestedField(1, "n", "int"), NestedField(2, "p", "int"), partition_spec=["p", ("n", "bucket[2]")])
        put(table, *({"n": n, "p": n % 2} for n in range(4)))
        with table.update_schema() as update:
            update.update_column("p", "long")
            update.rename_column("p", "part")
            update.move_first("part")
        put(table, {"n": 4, "part": 2**40})
        found = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["n"])
        assert found == [{"part": n % 2, "n": n} for n in range(4)] + [{"part": 2**40, "n": 4}]
        assert table.scan("part = 1").count() == 2
        assert table.scan("part > 1").to_arrow()["n"].to_pylist() == [4]
