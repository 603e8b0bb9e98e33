"""Tables that others wrote: Spark, Trino, Impala, Athena, Flink, PyIceberg, ... read as their peers read them.

``ICEFIELD_FIXTURES`` names a folder of such tables, with an ``INDEX.json`` that states the expected results for each:
the digest of its rows (see ``canonical``), how many rows match filters, what each snapshot holds, and its schema.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import icefield
import pytest
from canonical import canonical_rows, digest_of, rows_digest
from icefield.catalog import Table
from icefield.errors import IcefieldError, InvalidFile
from icefield.expressions import (
    BooleanExpression,
    EqualTo,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    NotEqualTo,
    StartsWith,
    parse,
)
from icefield.manifest import read_manifest_list
from icefield.scan import TableScan
from icefield.schema import schema_from_json
from icefield_maintenance.doctor import Result, examine_table

FIXTURES = os.environ.get("ICEFIELD_FIXTURES")
pytestmark = pytest.mark.skipif(FIXTURES is None, reason="ICEFIELD_FIXTURES does not name a folder of tables")

ROOT = Path(FIXTURES or "/nowhere").absolute()
INDEX: list[dict[str, Any]] = json.loads((ROOT / "INDEX.json").read_text("utf-8")) if FIXTURES else []
EVERY = pytest.mark.parametrize("entry", INDEX or [{"name": "none"}], ids=lambda entry: entry["name"])

OPERATORS = {
    "eq": EqualTo,
    "not_eq": NotEqualTo,
    "lt": LessThan,
    "gt_eq": GreaterThanOrEqual,
    "in": In,
    "starts_with": StartsWith,
}
DELETES = ("pos_delete_files", "eq_delete_files", "dv_blobs")

REFUSED: dict[str, tuple[type[IcefieldError], str]] = {
    # Other readers guess field ids by position there; the specification has no such rule.
    "impala__airports_parquet": (InvalidFile, "no field ids and the table has no name mapping"),
}
"""The tables of which some snapshot is refused: with which error, and a part of its message. All others must read."""


def opened(entry: dict[str, Any]) -> Table:
    """The table at its present location, by a map from the locations in its metadata."""
    folder = ROOT / entry["dir"]
    maps = {f"location.map.{each['from']}": f"file://{folder}/{each['to']}" for each in entry["prefix_map"]}
    return icefield.open_table(f"file://{folder}/{entry['metadata_file']}", properties=maps)


def expression(column: str, op: str, value: Any) -> BooleanExpression:
    return IsNull(column) if op == "is_null" else OPERATORS[op](column, value)


def refused(entry: dict[str, Any]) -> type[IcefieldError] | tuple[()]:
    """The error that a table may raise instead of giving rows; none for most tables."""
    return REFUSED[entry["name"]][0] if entry["name"] in REFUSED else ()


def digest(scan: TableScan) -> tuple[int, str]:
    rows = canonical_rows(scan.to_arrow(), scan.projection)
    return len(rows), digest_of(rows)


@EVERY
@pytest.mark.spec(
    "VER-13", "VER-02", "VER-03", "META-30", "PRJ-01", "PRJ-03", "PRJ-05", "PRJ-06", "PRJ-12", "SCAN-01", "SCAN-02"
)
def test_a_table_of_another_writer_gives_the_rows_that_others_read(entry):
    expected = entry["expected"]
    scan = opened(entry).scan()
    if entry["name"] in REFUSED:
        kind, words = REFUSED[entry["name"]]
        with pytest.raises(kind, match=words):
            scan.to_arrow()
        return
    assert digest(scan) == (expected["row_count"], expected["rows_sha256"])
    assert scan.count() == expected["row_count"]


@EVERY
def test_what_is_refused_of_a_table_of_another_writer_is_refused_for_a_reason(entry):
    table = opened(entry)
    kept = [each["snapshot_id"] for each in entry["expected"]["snapshots"] if "unavailable" not in each]
    outcomes = [outcome(table.scan(snapshot_id=snapshot_id)) for snapshot_id in kept]
    if entry["name"] not in REFUSED:
        assert not any(outcomes)
        return
    kind, words = REFUSED[entry["name"]]
    assert any(outcomes), "every snapshot reads: it is no longer refused"
    assert all(error is None or (isinstance(error, kind) and words in str(error)) for error in outcomes)


def outcome(scan: TableScan) -> IcefieldError | None:
    """The error that reading raises, if any."""
    try:
        scan.to_arrow()
    except IcefieldError as error:
        return error
    return None


def test_no_table_is_excused_that_is_not_there():
    assert REFUSED.keys() <= {entry["name"] for entry in INDEX}


@EVERY
@pytest.mark.spec("VER-13", "SCH-01", "TYP-28")
def test_a_table_of_another_writer_has_the_schema_that_it_says(entry):
    expected = entry["expected"]["current_schema"]
    assert opened(entry).schema() == schema_from_json(expected)


@EVERY
@pytest.mark.spec("VER-13", "SCAN-03", "SCAN-17", "SCAN-26", "ML-10", "MAN-32")
def test_a_table_of_another_writer_is_planned_file_by_file(entry):
    table = opened(entry)
    plan = entry["expected"]["current_plan"]
    tasks = list(table.scan().plan_files())
    deletes = {(delete.file_path, delete.content_offset) for task in tasks for delete in task.delete_files}
    assert len(tasks) == plan["data_files"]
    assert sum(task.file.record_count for task in tasks) == plan["data_records"]
    assert len(deletes) <= sum(plan[kind] for kind in DELETES)  # some are older than every file
    assert deletes or entry["expected"]["row_count"] == plan["data_records"]
    snapshot = table.current_snapshot()
    if snapshot is not None:
        assert len(read_manifest_list(table.io, snapshot, table.metadata).manifests) == plan["manifests"]


@EVERY
@pytest.mark.spec("VER-13", "SCAN-04", "SCAN-19", "SCAN-23", "SCAN-24", "MET-19")
def test_filters_on_a_table_of_another_writer_match_as_many_rows_as_for_others(entry):
    table = opened(entry)
    for each in entry["expected"]["filters"]:
        wanted = expression(each["column"], each["op"], each["value"])
        try:
            read = table.scan(wanted, selected_fields=(each["column"],)).to_arrow().num_rows
            counted = table.scan(parse(str(wanted))).count()
        except refused(entry):
            continue
        assert (read, counted) == (each["row_count"],) * 2, each


@EVERY
@pytest.mark.spec("VER-13", "SCAN-60", "SCAN-63", "SCH-30")
def test_each_snapshot_of_a_table_of_another_writer_gives_what_others_read(entry):
    table = opened(entry)
    for each in entry["expected"]["snapshots"]:
        if "unavailable" in each:
            continue
        scan = table.scan(snapshot_id=each["snapshot_id"])
        assert scan.schema.schema_id == each["schema_id"] or each["schema_id"] is None
        try:
            found = scan.to_arrow()
        except refused(entry):
            continue
        assert found.num_rows == each["row_count"], each
        assert rows_digest(found, scan.projection) == each["rows_sha256"], each


FAULTS: dict[str, dict[str, int]] = {
    # The collection shortened or rewrote the files, and left out earlier versions.
    "pglake__spark_generated_iceberg_test_2": {"metadata-log": 6, "manifest-lists": 3, "small-files": 1},
    "impala__airports_parquet": {"metadata-log": 1, "files-damaged": 1},
    "impala__hadoop_catalog_test": {"small-files": 1},
    "impala__iceberg_alltypes_part": {"metadata-log": 1},
    "impala__iceberg_timestamp_part": {"metadata-log": 1},
    "impala__iceberg_uppercase_col": {"last-column-id": 1},
    "impala__iceberg_v2_delete_equality": {"metadata-log": 3, "dangling-deletes": 1, "delete-debt": 1},
    "impala__iceberg_v2_delete_positional": {"file-sizes": 1, "delete-debt": 1},
    "impala__iceberg_v2_no_deletes": {"metadata-log": 1},
    "impala__iceberg_v2_no_deletes_orc": {"metadata-log": 1},
    "impala__iceberg_v2_partitioned_position_deletes": {"metadata-log": 2, "delete-debt": 1},
    "impala__iceberg_v2_positional_delete_all_rows": {"metadata-log": 2, "delete-debt": 1},
    "impala__iceberg_v2_positional_not_all_data_files_have_delete_files": {"metadata-log": 6, "delete-debt": 1},
    "impala__iceberg_v2_positional_update_all_rows": {"metadata-log": 3, "delete-debt": 1},
    "impala__iceberg_partitioned_orc": {"small-files": 1},
    "impala__iceberg_non_partitioned": {"small-files": 1},
    "impala__iceberg_partitioned": {"small-files": 1},
    "impala__iceberg_v3_default_value": {"metadata-log": 3},
    "impala__iceberg_v3_deletion_vectors": {"small-files": 1, "delete-debt": 1},
    "impala__iceberg_with_puffin_stats": {"metadata-log": 2, "manifest-lengths": 1},
    "duckdb__equality_deletes_mytable": {"manifest-lists": 1, "delete-debt": 1},
    "duckdb__test_nulls": {"manifest-lengths": 3},
    **{f"duckdb__partition_{kind}": {"file-sizes": 2} for kind in ("bigint", "bool", "decimal_smallint", "float")},
    **{f"duckdb__partition_{kind}": {"file-sizes": 2} for kind in ("integer", "timestamp")},
    "duckdb__partition_decimal_bigint": {"file-sizes": 10},
    "icebird__spark_bunnies": {"dangling-deletes": 1},
    "lithium__granular_deletes": {"delete-debt": 1},
    "polars__iceberg-table": {"metadata-log": 1},
}
"""What is honestly wrong with a table, or to do: how many findings of which check. All others are sound."""


@EVERY
def test_the_doctor_finds_the_honest_faults_of_a_table_of_another_writer_and_no_others(entry):
    found: Counter[str] = Counter()
    for group in examine_table(opened(entry), whole=True):
        # The age of snapshots depends on the day on which the test runs.
        wrong = [each for each in group.findings if each.result is not Result.OK and each.check != "old-snapshots"]
        assert all(each.location and each.advice and each.section for each in wrong)
        found.update(each.check for each in wrong)
    assert found == FAULTS.get(entry["name"], {})


def test_no_fault_is_expected_of_a_table_that_is_not_there():
    assert FAULTS.keys() <= {entry["name"] for entry in INDEX}
