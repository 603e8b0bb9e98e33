"""Tables of Icefield, as PyIceberg reads them by a shared catalog, and DuckDB and ClickHouse by the metadata file."""

from importlib.util import find_spec

import pyarrow as pa
import pytest
from icefield.schema import Schema
from icefield.types import NestedField
from peer_tables import (
    EVERY_TYPE,
    FAR,
    FILTERS,
    HISTORY_FILTERS,
    TRANSFORMS,
    every_type_rows,
    partition_fields,
    table_with_history,
)
from peers import (
    altered,
    as_chdb_reads,
    as_pyiceberg_reads,
    chdb_rows,
    duckdb_rows,
    our_filter,
    pyiceberg_catalog,
    pyiceberg_filter,
    sorted_rows,
)

pytest.importorskip("pyiceberg")
if find_spec("chdb") is None:  # to import it takes 250 MB of every process that looks for tests
    pytest.skip("chdb is not there", allow_module_level=True)

VERSIONS = pytest.mark.parametrize("format_version", [1, 2, 3])


def count(rows: pa.Table) -> int:
    return rows.column(0)[0].as_py()


def judge(table, folder, duck, click, filters=(), excused=frozenset()):
    """Compare the rows that every peer reads from the current snapshot with Icefield's rows, and return the latter.

    ``excused``: peers that cannot read the table, and (peer, column) where they answer filters wrongly.
    """
    schema = table.schema()
    rows = table.scan().to_arrow()
    with pyiceberg_catalog(folder) as catalog:
        theirs = catalog.load_table(table.name())
        peers = {
            "PyIceberg": (lambda: theirs.scan().to_arrow(), as_pyiceberg_reads),
            "DuckDB": (lambda: duckdb_rows(duck, table), None),
            "ClickHouse": (lambda: chdb_rows(click, table), as_chdb_reads),
        }
        matches = {
            "PyIceberg": lambda given: theirs.scan(pyiceberg_filter(given)).to_arrow().num_rows,
            "DuckDB": lambda given: count(duckdb_rows(duck, table, ["count(*)"], given)),
            "ClickHouse": lambda given: count(chdb_rows(click, table, ["count(*)"], given)),
        }
        for peer in sorted(peers.keys() - excused):
            read, differently = peers[peer]
            ours = rows if differently is None else altered(rows, schema, differently)
            assert sorted_rows(read(), schema) == sorted_rows(ours, schema), peer
            for given in filters:
                if (peer, given.column) not in excused:
                    assert matches[peer](given) == table.scan(our_filter(given)).count(), (peer, given)
    return rows


EXCUSED = {
    # ClickHouse cannot parse a UUID in a partition tuple, and reads a time there as microseconds instead of seconds.
    # For PyIceberg, a UUID in a partition tuple never equals a literal.
    "identity of uuids and times": {"ClickHouse", ("PyIceberg", "c_uuid")},
    # Both put UUIDs in other buckets than the hash of the format's Appendix B does.
    "bucket[3]": {("DuckDB", "c_uuid"), ("ClickHouse", "c_uuid")},
    "truncate[10]": {("DuckDB", "c_small")},  # fails on negative decimals
}


@VERSIONS
@pytest.mark.spec("VER-13", "VER-01", "TYP-29", "JSON-26", "MAN-21")
def test_every_type_is_read_by_others_as_it_was_written(catalog, tmp_path, duck, click, format_version):
    table = catalog.create_table("db.types", EVERY_TYPE, properties={"format-version": str(format_version)})
    given = every_type_rows()
    table.append(given)
    rows = judge(table, tmp_path, duck, click, FILTERS if format_version == 2 else ())
    assert sorted_rows(rows, table.schema()) == sorted_rows(given, table.schema())


@pytest.mark.spec("VER-13", "TYP-08", "TYP-10", "TYP-11")
def test_the_ends_of_the_calendar_are_read_by_others(catalog, tmp_path, duck, click):
    schema = Schema(NestedField(1, "d", "date"), NestedField(2, "t", "timestamp"), NestedField(3, "z", "timestamptz"))
    table = catalog.create_table("db.far", schema)
    table.append(pa.Table.from_pylist(FAR, schema=table.scan().to_arrow().schema))
    ours = sorted_rows(table.scan().to_arrow(), table.schema())
    assert sorted_rows(duckdb_rows(duck, table), table.schema()) == ours
    with pyiceberg_catalog(tmp_path) as peer:
        assert sorted_rows(peer.load_table("db.far").scan().to_arrow(), table.schema()) == ours


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.spec("VER-13", "PART-04", "PART-08", "PART-22", "PRJ-19", "SCAN-04", "ML-15", "MAN-33")
def test_tables_that_are_partitioned_by_any_transform_are_pruned_by_others(catalog, tmp_path, duck, click, transform):
    table = catalog.create_table("db.parts", EVERY_TYPE, partition_spec=partition_fields(transform))
    table.append(every_type_rows())
    columns = set(TRANSFORMS[transform])
    filters = [given for given in FILTERS if given.column in columns]
    judge(table, tmp_path, duck, click, filters, EXCUSED.get(transform, frozenset()))


@VERSIONS
@pytest.mark.spec("VER-13", "SCH-01", "SCH-06", "SCH-07", "SCH-10", "SCH-11", "SCH-12", "PART-07", "SCAN-43", "SNAP-10")
def test_a_table_with_a_history_of_every_change_is_read_by_others(catalog, tmp_path, duck, click, format_version):
    table = table_with_history(catalog, "db.history", format_version)
    rows = judge(table, tmp_path, duck, click, HISTORY_FILTERS)
    assert sorted(rows["id"].to_pylist()) == IDS


IDS = sorted([3, 4, 6, 7, 8, 10, 12, 14, 20, 24, 26, 30, 40, 2**40, *(2**33 + n for n in (11, 13, 15, 21, 31))])
