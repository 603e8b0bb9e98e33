"""Iceberg's Java library reads files that Icefield writes, in each format, and Icefield reads files of the library."""

import datetime as dt
import itertools
from decimal import Decimal
from hashlib import sha256

import icefield_avro.writer as avro_writer
import pyarrow as pa
import pytest
from icefield import open_table
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.partitioning.spec import spec_to_json
from icefield.schema import Schema, schema_to_arrow, schema_to_json
from icefield.types import DecimalType, ListType, MapType, NestedField, StructType
from icefield.types.values import decimal_from_unscaled
from peer_tables import EVERY_TYPE, FAR, every_type_rows, partition_fields, rows_of, table_with_history
from plain_rows import comparable, plain_rows
from servers.java_iceberg import JavaError

FORMATS = pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
EPOCH = dt.datetime(1970, 1, 1)
LOST_BY_JAVA = (EPOCH - dt.timedelta(microseconds=999_001), EPOCH - dt.timedelta(milliseconds=1))
"""ORC has no way to store moments after the first and up to the second that its Java library reads back."""
SMALL_BLOCKS = {
    "write.parquet.row-group-size-bytes": "4000",
    "write.orc.stripe-size-bytes": "4000",
    "write.orc.vectorized.batch-size": "100",
    "write.avro.block-size-bytes": "1000",
}


def ours(table, *row_filter):
    return comparable(plain_rows(table.scan(*row_filter).to_arrow(), table.schema()), table.schema())


def theirs(java, table, given=None):
    return comparable(java.read(table.metadata_location, given), table.schema())


def check_format(table, file_format):
    assert {task.file.file_format.lower() for task in table.scan().plan_files()} == {file_format}


def new(catalog, schema, file_format, version=2, **given):
    properties = {"write.format.default": file_format, "format-version": str(version), **given.pop("properties", {})}
    return catalog.create_table("db.t", schema, properties=properties, **given)


class TestJavaReads:
    @FORMATS
    @pytest.mark.parametrize("version", [1, 2])
    @pytest.mark.spec("VER-13", "TYP-29")
    def test_every_type(self, catalog, java_iceberg, file_format, version):
        table = new(catalog, EVERY_TYPE, file_format, version)
        table.append(every_type_rows())
        check_format(table, file_format)
        assert theirs(java_iceberg, table) == ours(table)

    @FORMATS
    @pytest.mark.spec("VER-13", "ORC-04", "ORC-05", "ORC-07", "ORC-08", "AVRO-05", "AVRO-06", "PARQ-06")
    def test_moments_before_and_after_every_turn_of_a_second(self, catalog, java_iceberg, file_format):
        schema = Schema(NestedField(1, "n", "long"), NestedField(2, "t", "timestamp"),
                        NestedField(3, "z", "timestamptz"), NestedField(4, "d", "date"),
                        NestedField(5, "l", ListType(6, "timestamp")))  # fmt: skip
        turns = [dt.datetime(1, 1, 3), dt.datetime(1582, 10, 10), dt.datetime(1883, 11, 18, 12),
                 dt.datetime(1900, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 58), EPOCH,
                 dt.datetime(1970, 1, 1, 0, 0, 1), dt.datetime(2015, 1, 1),
                 dt.datetime(2021, 3, 14, 2, 30), dt.datetime(9999, 12, 31)]  # fmt: skip
        shifts = [-1_000_001, -1_000_000, -999_999, -500_000, -1000, -999, -1, 0, 1, 999, 1000, 999_999, 1_000_001]
        rows = []
        for number, (turn, shift) in enumerate(itertools.product(turns, shifts)):
            moment = turn + dt.timedelta(microseconds=shift)
            if file_format == "orc" and LOST_BY_JAVA[0] < moment <= LOST_BY_JAVA[1]:
                continue
            zoned = moment.replace(tzinfo=dt.UTC)
            rows.append({"n": number, "t": moment, "z": zoned, "d": moment.date(), "l": [moment, None]})
        table = new(catalog, schema, file_format)
        table.append(pa.Table.from_pylist(rows, schema=schema_to_arrow(schema)))
        assert theirs(java_iceberg, table) == ours(table)
        assert table.scan().to_arrow().sort_by("n").to_pylist() == rows
        for moment in sorted({row["t"] for row in rows})[::5]:
            given = {"type": "eq", "term": "t", "value": moment.isoformat()}
            found = java_iceberg.read(table.metadata_location, given)
            assert {row["n"] for row in found} == {row["n"] for row in rows if row["t"] == moment}

    @pytest.mark.parametrize("codec", ["none", "zlib", "zstd", "snappy", "lz4"])
    @pytest.mark.spec("VER-13", "ORC-07", "ORC-17", "ORC-18")
    def test_stripes_of_orc_that_hold_moments_before_1970_at_any_depth(self, catalog, java_iceberg, codec):
        inner = StructType(NestedField(11, "t", "timestamp"), NestedField(12, "u", "string"))
        schema = Schema(NestedField(1, "n", "long"), NestedField(2, "s", inner),
                        NestedField(3, "l", ListType(4, ListType(5, "timestamptz"))),
                        NestedField(6, "m", MapType(7, "timestamp", 8, "string")))  # fmt: skip
        rows = []
        for number in range(3_000):
            # The stripes in the middle have early times.
            start = dt.datetime(1930, 1, 1) if 1_000 <= number < 2_000 else dt.datetime(2030, 1, 1)
            moment = start + dt.timedelta(microseconds=1_000_003 * number)
            held = {"t": moment, "u": sha256(b"%d" % number).hexdigest()} if number % 7 else None
            lists = [[moment.replace(tzinfo=dt.UTC), None], None, []] if number % 5 else None
            rows.append({"n": number, "s": held, "l": lists, "m": [(moment, None), (moment + dt.timedelta(1), "x")]})
        properties = {**SMALL_BLOCKS, "write.orc.compression-codec": codec, "read.split.target-size": "5000"}
        table = new(catalog, schema, "orc", properties=properties)
        table.append(pa.Table.from_pylist(rows, schema=schema_to_arrow(schema)))
        (file,) = (task.file for task in table.scan().plan_files())
        assert len(file.split_offsets) > 3
        assert theirs(java_iceberg, table) == ours(table)
        for number in (1, 999, 1_000, 1_500, 2_999):
            given = {"type": "eq", "term": "n", "value": number}
            assert theirs(java_iceberg, table, given) == ours(table, f"n = {number}") != []
            if rows[number]["s"] is not None:
                given = {"type": "eq", "term": "s.t", "value": rows[number]["s"]["t"].isoformat()}
                text = f"s.t = '{rows[number]['s']['t'].isoformat()}'"
                assert theirs(java_iceberg, table, given) == ours(table, text) != []

    @FORMATS
    @pytest.mark.spec("VER-13", "AVRO-02", "PARQ-03", "ORC-01")
    def test_decimals_of_every_precision(self, catalog, java_iceberg, file_format):
        kinds = [DecimalType(precision, precision // 2) for precision in range(1, 39)]
        schema = Schema(*(NestedField(kind.precision, f"d{kind.precision}", kind) for kind in kinds))
        rows = []
        for unscaled in (lambda p: 10**p - 1, lambda p: 1 - 10**p, lambda p: -1, lambda p: 0, lambda p: 10 ** (p - 1)):
            rows.append({f"d{k.precision}": decimal_from_unscaled(unscaled(k.precision), k.scale) for k in kinds})
        table = new(catalog, schema, file_format)
        table.append(pa.Table.from_pylist([*rows, {}], schema=schema_to_arrow(schema)))
        assert theirs(java_iceberg, table) == ours(table)

    @FORMATS
    @pytest.mark.parametrize("version", [1, 2])
    @pytest.mark.spec("VER-13", "SCH-10", "SCH-11", "SCH-12", "PART-16", "PRJ-16", "AVRO-26", "ORC-13")
    def test_a_table_with_a_history(self, catalog, java_iceberg, file_format, version):
        table = table_with_history(catalog, "db.t", version, **{"write.format.default": file_format})
        check_format(table, file_format)
        assert theirs(java_iceberg, table) == ours(table)
        for text, given in (
            ("price < 7", {"type": "lt", "term": "price", "value": "7.00"}),
            ("id > 8589934592", {"type": "gt", "term": "id", "value": 2**33}),
            ("label like 'n2%'", {"type": "starts-with", "term": "label", "value": "n2"}),
            ("note is null", {"type": "is-null", "term": "note"}),
            ("day >= '2021-07-01'", {"type": "gt-eq", "term": "day", "value": "2021-07-01"}),
        ):
            assert theirs(java_iceberg, table, given) == ours(table, text) != []

    @FORMATS
    @pytest.mark.parametrize(
        "transform", ["identity", "identity of uuids and times", "bucket[3]", "truncate[10]", "day"]
    )
    @pytest.mark.spec("VER-13", "PRJ-19")
    def test_partitions(self, catalog, java_iceberg, file_format, transform):
        table = new(catalog, EVERY_TYPE, file_format, partition_spec=partition_fields(transform))
        table.append(every_type_rows())
        assert theirs(java_iceberg, table) == ours(table)
        given = {"type": "lt", "term": "c_int", "value": 1}
        assert theirs(java_iceberg, table, given) == ours(table, "c_int < 1") != []

    @FORMATS
    @pytest.mark.spec("VER-13", "MAN-46", "ORC-17", "PARQ-19")
    def test_each_piece_of_a_file_that_is_read_in_pieces(self, catalog, java_iceberg, file_format, monkeypatch):
        monkeypatch.setattr(avro_writer, "_SPLIT_EVERY", 2000)
        properties = {**SMALL_BLOCKS, "read.split.target-size": "3000", "read.split.open-file-cost": "1"}
        schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
        table = new(catalog, schema, file_format, properties=properties)
        table.append(pa.table({"n": range(6000), "s": [sha256(b"%d" % n).hexdigest() for n in range(6000)]}))
        (file,) = (task.file for task in table.scan().plan_files())
        assert len(file.split_offsets) > 3
        found = theirs(java_iceberg, table)
        assert len(found) == 6000
        assert found == ours(table)

    @FORMATS
    @pytest.mark.spec("VER-13", "PRJ-01")
    def test_a_table_whose_files_are_of_three_formats(self, catalog, java_iceberg, file_format):
        formats = ["parquet", "orc", "avro"]
        table = new(catalog, EVERY_TYPE, file_format)
        for each in formats:
            with table.transaction() as transaction:
                transaction.set_properties({"write.format.default": each})
            table.append(every_type_rows())
        assert {task.file.file_format.lower() for task in table.scan().plan_files()} == set(formats)
        assert theirs(java_iceberg, table) == ours(table)

    @FORMATS
    @pytest.mark.spec("VER-13", "AVRO-31", "PARQ-20")
    def test_names_of_all_kinds(self, catalog, java_iceberg, file_format):
        names = ["a b", "1st", "ü", "x-y", "dollar$", "日本", "UPPER", "_x2E"]
        inner = StructType(*(NestedField(20 + at, name, "int") for at, name in enumerate(names)))
        columns = [NestedField(at + 1, name, "string") for at, name in enumerate(names)]
        schema = Schema(*columns, NestedField(10, "in side", inner))
        table = new(catalog, schema, file_format)
        row = {**{name: name * 2 for name in names}, "in side": {name: at for at, name in enumerate(names)}}
        table.append(pa.Table.from_pylist([row, {}], schema=schema_to_arrow(schema)))
        assert theirs(java_iceberg, table) == ours(table)

    @FORMATS
    @pytest.mark.spec("VER-13", "DEF-01", "DEF-02")
    def test_defaults_of_version_3(self, catalog, java_iceberg, file_format):
        table = new(catalog, Schema(NestedField(1, "id", "int", required=True)), file_format, 3)
        table.append(rows_of(table, {"id": 1}))
        with table.update_schema() as update:
            update.add_column("text", "string", default_value="é")
            update.add_column("number", "long", required=True, default_value=7)
            update.add_column("day", "date", default_value=dt.date(2020, 1, 1))
        table.append(rows_of(table, {"id": 2, "number": 5}))
        found = ours(table)
        assert len(found) == 2
        if file_format == "orc":
            with pytest.raises(JavaError, match="ORC cannot read default value"):
                theirs(java_iceberg, table)
        else:
            assert theirs(java_iceberg, table) == found

    @pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
    @pytest.mark.spec("VER-13", "TYP-22")
    def test_nanoseconds(self, catalog, java_iceberg, file_format):
        schema = Schema(NestedField(1, "t", "timestamp_ns"), NestedField(2, "z", "timestamptz_ns"))
        table = new(catalog, schema, file_format, 3)
        values = [1, None, -1, -999_999, -999_999_999, -1_000_000_001, -1_500_000_500, 1_510_871_468_123_456_789]
        arrow = schema_to_arrow(schema)
        table.append(pa.table([pa.array(values, field.type) for field in arrow], schema=arrow))
        assert theirs(java_iceberg, table) == ours(table)


WRITTEN = Schema(
    *(field for field in EVERY_TYPE.fields if field.name != "dates"),
    NestedField(30, "dates", MapType(31, "int", 32, StructType(NestedField(33, "day", "date")))),
    NestedField(40, "keys", MapType(41, "date", 42, "decimal(20,3)")),
    NestedField(50, "lists", ListType(51, ListType(52, "timestamptz"), element_required=True)),
)


class TestJavaWrites:
    def rows(self):
        more = [{"keys": [(dt.date(1, 1, 1), Decimal("-1.125")), (dt.date(9999, 12, 31), None)],
                 "lists": [[EPOCH.replace(tzinfo=dt.UTC), None], []]}, {"keys": [], "lists": []}, {}, {}]  # fmt: skip
        rows = [{**row, **extra} for row, extra in zip(every_type_rows().to_pylist(), more, strict=True)]
        # Java's ORC writer cannot store the last microsecond before 1970.
        rows = [{**row, "c_timestamp": row["c_timestamp"] and max(row["c_timestamp"], EPOCH)} for row in rows]
        for number, far in enumerate(FAR):
            rows.append({"c_int": 100 + number, "c_date": far["d"], "c_timestamp": far["t"], "c_timestamptz": far["z"]})
        for number, micros in enumerate((-999_999, -1_000_000, -1_000_001, -2_000_999, -1_000_500_000)):
            rows.append({"c_int": 200 + number, "c_timestamp": EPOCH + dt.timedelta(microseconds=micros)})
        table = pa.Table.from_pylist(rows, schema=schema_to_arrow(WRITTEN))
        return plain_rows(table, WRITTEN)

    def read(self, folder, version):
        table = open_table(f"file://{folder}/metadata/v{version}.metadata.json")
        return table, comparable(plain_rows(table.scan().to_arrow(), table.schema()), table.schema())

    @FORMATS
    @pytest.mark.parametrize("version", [1, 2])
    @pytest.mark.spec("VER-13", "TYP-29", "ORC-07", "ORC-12", "AVRO-12", "AVRO-13", "AVRO-23")
    def test_every_type(self, tmp_path, java_iceberg, file_format, version):
        properties = {"format-version": str(version)}
        java_iceberg.create(f"{tmp_path}/t", schema_to_json(WRITTEN), properties=properties)
        java_iceberg.append(f"{tmp_path}/t", file_format, self.rows())
        table, found = self.read(tmp_path / "t", 2)
        check_format(table, file_format)
        assert found == comparable(self.rows(), WRITTEN)

    @FORMATS
    @pytest.mark.spec("VER-13", "SCAN-04", "SCAN-19", "MET-04")
    def test_filters_on_partitions(self, tmp_path, java_iceberg, file_format):
        fields = [("c_int", "bucket[4]"), ("c_date", "month"), ("c_string", "identity"), ("c_timestamptz", "day")]
        given = [PartitionField(WRITTEN.find_field(name).field_id, 1000 + at, transform, f"{name}_part")
                 for at, (name, transform) in enumerate(fields)]  # fmt: skip
        java_iceberg.create(f"{tmp_path}/t", schema_to_json(WRITTEN), spec_to_json(PartitionSpec(*given)))
        java_iceberg.append(f"{tmp_path}/t", file_format, self.rows())
        table, found = self.read(tmp_path / "t", 2)
        assert found == comparable(self.rows(), WRITTEN)
        for text in ("c_int = 100", "c_date < '1970-01-01'", "c_string = ''", "c_timestamptz >= '2000-01-01T00:00:00Z'",
                     "c_timestamp < '1970-01-01T00:00:00'", "c_timestamp = '1969-12-31T23:59:58.999999'",
                     "c_double is nan", "c_large < 0", "c_uuid is not null", "c_long > 5"):  # fmt: skip
            whole = plain_rows(table.scan().to_arrow().filter(self.naive(table, text)), table.schema())
            some = plain_rows(table.scan(text).to_arrow(), table.schema())
            assert comparable(some, table.schema()) == comparable(whole, table.schema()) != []

    def naive(self, table, text):
        """The rows of the same filter evaluated on all rows in memory, where no file can be skipped."""
        from icefield.expressions import bind, parse
        from icefield.expressions.arrow import evaluate

        rows = table.scan().to_arrow().combine_chunks()
        return evaluate(bind(table.schema(), parse(text)), rows)

    @FORMATS
    @pytest.mark.spec("VER-13", "PRJ-01", "PRJ-03", "PRJ-16", "AVRO-26", "ORC-13")
    def test_evolution(self, tmp_path, java_iceberg, file_format):
        names = ["c_int", "c_float", "c_small", "c_string", "c_date", "list"]
        schema = WRITTEN.select(*names)
        first = [{name: row[name] for name in names} for row in self.rows()]
        java_iceberg.create(f"{tmp_path}/t", schema_to_json(schema))
        java_iceberg.append(f"{tmp_path}/t", file_format, first)
        java_iceberg.evolve(f"{tmp_path}/t", promote={"c_int": "long", "c_float": "double", "c_small": "decimal(30,2)"})
        java_iceberg.evolve(f"{tmp_path}/t", rename={"c_int": "c_string_", "c_float": "c_int"}, drop=["c_date"])
        java_iceberg.evolve(f"{tmp_path}/t", add={"c_date": "timestamp"})
        second = {"c_string_": 2**40, "c_int": 1e300, "c_small": "12345678901234567890.25", "c_string": "s",
                  "c_date": 5, "list": [1]}  # fmt: skip
        java_iceberg.append(f"{tmp_path}/t", file_format, [second])
        table, found = self.read(tmp_path / "t", 6)
        moved = [{"c_string_": row["c_int"], "c_int": row["c_float"], "c_small": row["c_small"],
                  "c_string": row["c_string"], "c_date": None, "list": row["list"]} for row in first]  # fmt: skip
        assert found == comparable([*moved, second], table.schema())


def test_an_answer_that_is_an_error_is_raised(java_iceberg):
    with pytest.raises(JavaError, match="nothing"):
        java_iceberg.read("/nothing/here.metadata.json")
