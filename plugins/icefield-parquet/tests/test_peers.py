"""PyIceberg, DuckDB and pyarrow read what is written here, and what they write is read here."""

import datetime as dt
from decimal import Decimal
from uuid import UUID

import duckdb
import icefield
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from icefield.partitioning import PartitionField, PartitionSpec
from icefield.schema import Schema, schema_to_arrow
from icefield.types import ListType, MapType, NestedField, StructType, parse_type
from parquet_files import read_as, write

KINDS = {
    "boolean": [True, False, None],
    "int": [-(2**31), 2**31 - 1, None],
    "long": [-(2**63), 2**63 - 1, None],
    "float": [1.5, -0.0, None],
    "double": [float("inf"), 5e-324, None],
    "decimal(9,2)": [Decimal("-1.28"), Decimal("9999999.99"), None],
    "decimal(18,4)": [Decimal("-1.2800"), Decimal("99999999999999.9999"), None],
    "decimal(38,10)": [Decimal("-1.2800000000"), Decimal("9" * 28 + "." + "9" * 10), None],
    "date": [dt.date(1969, 12, 31), dt.date(2024, 2, 29), None],
    "time": [dt.time(0), dt.time(23, 59, 59, 999999), None],
    "timestamp": [dt.datetime(1969, 12, 31, 23, 59), dt.datetime(2024, 2, 29, 1, 2, 3, 456789), None],
    "timestamptz": [dt.datetime(1969, 12, 31, tzinfo=dt.UTC), dt.datetime(2024, 2, 29, tzinfo=dt.UTC), None],
    "string": ["", "blå \U0001f600", None],
    "uuid": [bytes.fromhex("00112233445566778899aabbccddeeff"), bytes(16), None],
    "fixed[3]": [b"\0\1\2", b"\xff\xff\xff", None],
    "binary": [b"", b"\xff\0", None],
}
NAMES = {kind: f"c{number}" for number, kind in enumerate(KINDS)}


def all_types():
    """A schema with a column of each type, and with each nested kind; and rows of it."""
    fields = [NestedField(number, NAMES[kind], parse_type(kind)) for number, kind in enumerate(KINDS, 1)]
    nested = (
        NestedField(50, "st", StructType(NestedField(51, "x", "int"), NestedField(52, "y", "string"))),
        NestedField(53, "li", ListType(54, parse_type("long"))),
        NestedField(55, "ma", MapType(56, parse_type("string"), 57, parse_type("double"))),
        NestedField(58, "ls", ListType(59, StructType(NestedField(60, "d", "date")))),
    )
    rows = []
    for number in range(3):
        row = {NAMES[kind]: values[number] for kind, values in KINDS.items()}
        row["st"] = [{"x": 1, "y": None}, None, {"x": None, "y": "q"}][number]
        row["li"] = [[1, None], None, []][number]
        row["ma"] = [[("k", 1.5), ("l", None)], None, []][number]
        row["ls"] = [[{"d": dt.date(2020, 1, 1)}, None], None, []][number]
        rows.append(row)
    return Schema(*fields, *nested), rows


@pytest.fixture
def catalogs(tmp_path):
    """One catalog in a database file, through Icefield and through PyIceberg."""
    from pyiceberg.catalog.sql import SqlCatalog

    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse"
    ours = icefield.load_catalog("shared", type="sql", uri=uri, warehouse=warehouse)
    ours.create_namespace("db")
    return ours, SqlCatalog("shared", uri=uri, warehouse=warehouse)


def plain(rows):
    """Rows in the one form that readers agree on."""
    return [{name: plain_value(value) for name, value in row.items()} for row in rows]


def plain_value(value):
    match value:
        case UUID():
            return value.bytes
        case dict():
            return {key: plain_value(each) for key, each in value.items()}
        case list():
            return [plain_value(each) for each in value]
        case tuple():
            return tuple(plain_value(each) for each in value)
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(dt.UTC).replace(tzinfo=None)
    return value


def as_pyiceberg_reads(rows):
    """PyIceberg takes a null list of structs for an empty one, reading and writing."""
    return [row | {"ls": row["ls"] or []} for row in rows]


@pytest.mark.spec("PARQ-01", "PARQ-02", "PARQ-03", "PARQ-04", "PARQ-05", "PARQ-06", "PARQ-08", "PARQ-09", "PARQ-10",
                  "PARQ-11", "PARQ-12")  # fmt: skip
def test_pyiceberg_reads_every_type(catalogs):
    ours, theirs = catalogs
    schema, rows = all_types()
    table = ours.create_table("db.t", schema)
    table.append(pa.Table.from_pylist(rows, schema=schema_to_arrow(table.schema())))
    assert plain(theirs.load_table("db.t").scan().to_arrow().to_pylist()) == plain(as_pyiceberg_reads(rows))
    assert plain(table.scan().to_arrow().to_pylist()) == plain(rows)


def test_pyiceberg_reads_partitioned_files_and_prunes_by_their_metrics(catalogs):
    ours, theirs = catalogs
    schema = Schema(NestedField(1, "n", "long"), NestedField(2, "t", "string"), NestedField(3, "d", "timestamp"))
    spec = PartitionSpec(
        PartitionField(2, 1000, "identity", "t"), PartitionField(3, 1001, "day", "d_day"),
        PartitionField(1, 1002, "bucket[4]", "n_bucket"),
    )  # fmt: skip
    table = ours.create_table("db.t", schema, partition_spec=spec)
    start = dt.datetime(2024, 1, 1)
    rows = [{"n": n, "t": ["a/b", None, "ü"][n % 3], "d": start + dt.timedelta(hours=n)} for n in range(100)]
    table.append(pa.Table.from_pylist(rows, schema=schema_to_arrow(table.schema())))
    peer = theirs.load_table("db.t")
    key = lambda row: row["n"]  # noqa: E731
    assert sorted(peer.scan().to_arrow().to_pylist(), key=key) == rows
    for text, count in (("t = 'ü'", 33), ("n >= 90", 10), ("d < '2024-01-02T00:00:00'", 24), ("t is null", 33)):
        scan = peer.scan(row_filter=text)
        assert scan.to_arrow().num_rows == count
        assert len(list(scan.plan_files())) < len(list(peer.scan().plan_files()))


def test_what_pyiceberg_writes_is_read(catalogs):
    ours, theirs = catalogs
    schema, rows = all_types()
    ours.create_table("db.t", schema)
    peer = theirs.load_table("db.t")
    arrow = peer.schema().as_arrow()
    columns = [
        pa.array([UUID(bytes=v).bytes if v else None for v in KINDS["uuid"]], pa.binary(16)).cast(field.type)
        if field.name == NAMES["uuid"]
        else pa.array([row[field.name] for row in rows], field.type)
        for field in arrow
    ]
    peer.append(pa.Table.from_arrays(columns, schema=arrow))
    found = ours.load_table("db.t").scan().to_arrow()
    assert plain(found.to_pylist()) == plain(as_pyiceberg_reads(rows))


def test_duckdb_reads_every_type(tmp_path):
    schema, rows = all_types()
    data, _ = write(schema, pa.Table.from_pylist(rows, schema=schema_to_arrow(schema)))
    path = tmp_path / "all.parquet"
    path.write_bytes(data)
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    found = connection.execute(f"select * from '{path}'").fetchall()
    names = [each[0] for each in connection.description]
    read = plain([dict(zip(names, row, strict=True)) for row in found])
    for row in read:
        row["ma"] = None if row["ma"] is None else list(row["ma"].items())
    assert read == plain(rows)


def test_pyarrow_reads_every_type_with_ids(tmp_path):
    schema, rows = all_types()
    data, _ = write(schema, pa.Table.from_pylist(rows, schema=schema_to_arrow(schema)))
    table = pq.read_table(pa.BufferReader(data))
    assert plain(table.to_pylist()) == plain(rows)
    assert table.schema.field("ls").type.value_type.field("d").metadata == {b"PARQUET:field_id": b"60"}


def test_what_duckdb_writes_is_read_by_its_field_ids(tmp_path):
    path = tmp_path / "duck.parquet"
    duckdb.execute(
        "copy (select 7::integer as i, 1.25::decimal(9,2) as d, 'x' as s, timestamp '2024-01-02 03:04:05' as t,"
        " {'a': 1, 'b': [1, 2]} as st, '00112233-4455-6677-8899-aabbccddeeff'::uuid as u)"
        f" to '{path}' (format parquet, field_ids {{i: 1, d: 2, s: 3, t: 4, st: {{__duckdb_field_id: 5, a: 6,"
        " b: {__duckdb_field_id: 7, element: 8}}, u: 9})"
    )
    kind = StructType(NestedField(7, "bs", ListType(8, parse_type("long"))), NestedField(6, "aa", "long"))
    schema = Schema(
        NestedField(9, "id", "uuid"),
        NestedField(5, "st", kind),
        NestedField(4, "t", "timestamp"),
        NestedField(3, "text", "string"),
        NestedField(2, "d", "decimal(18,2)"),
        NestedField(1, "i", "long"),
    )
    (row,) = read_as(schema, path.read_bytes()).to_pylist()
    assert row == {
        "id": bytes.fromhex("00112233445566778899aabbccddeeff"),
        "st": {"bs": [1, 2], "aa": 1},
        "t": dt.datetime(2024, 1, 2, 3, 4, 5),
        "text": "x",
        "d": Decimal("1.25"),
        "i": 7,
    }
