"""Java's reference server plans scans for Icefield: the rows are the same as with Icefield's own plans."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from icefield import Catalog, Table, load_catalog
from rest_kit import reference_server

pytestmark = [pytest.mark.peer, pytest.mark.slow]

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("value", pa.float64()), ("day", pa.date32())])
FILTERS = (
    "true",
    "id > 5",
    "part = 'a'",
    "part is null or id = 2",
    "value is nan",
    "value > 1",
    "day >= '1970-01-02'",
    "part in ('a', 'c') or id = 2",
    "not (part = 'a' or value = 0.5)",
    "id = 1000",
)


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with reference_server(tmp_path_factory.mktemp("java")) as address:
        yield address


@pytest.fixture(scope="module")
def catalog(uri: str) -> Iterator[Catalog]:
    with load_catalog("java", type="rest", uri=uri, **{"scan-planning-mode": "server"}) as made:
        made.create_namespace("db")
        yield made


@pytest.fixture(scope="module")
def table(catalog: Catalog) -> Table:
    """Files in partitions of three types, with values that JSON lacks, and deletes of rows."""
    properties = {"format-version": "2", "write.delete.mode": "merge-on-read"}
    made = catalog.create_table("db.t", SCHEMA, partition_spec=["part", "value", "day"], properties=properties)
    for number in range(3):
        columns = {
            "id": range(number * 4, number * 4 + 4),
            "part": [None, "a", "ab", "c"],
            "value": [float("nan"), None, float("inf"), 0.5],
            "day": pa.array([number, number + 1, None, 3], pa.int32()).cast(pa.date32()),
        }
        made.append(pa.table(columns, SCHEMA))
    made.delete("id in (1, 6)")
    return made


@pytest.mark.parametrize("row_filter", FILTERS)
def test_rows_are_those_of_a_plan_made_here(uri: str, table: Table, row_filter: str) -> None:
    with load_catalog("here", type="rest", uri=uri) as here:
        wanted = here.load_table("db.t").scan(row_filter)
        found = table.scan(row_filter)
        assert wanted.service is None
        assert found.service is not None
        assert sorted(map(str, found.to_arrow().to_pylist())) == sorted(map(str, wanted.to_arrow().to_pylist()))
        assert found.count() == wanted.count()


@pytest.mark.parametrize("row_filter", ["true", "id > 5", "part = 'a'"])
def test_appends_between_versions_are_those_of_a_plan_made_here(uri: str, table: Table, row_filter: str) -> None:
    ids = [each.snapshot_id for each in table.snapshots()]
    with load_catalog("here", type="rest", uri=uri) as here:
        mine = here.load_table("db.t")
        for begin, end in ((0, 1), (0, 2), (1, 2), (0, 3)):
            scans = [
                each.incremental_append_scan(
                    row_filter, from_snapshot_id_exclusive=ids[begin], to_snapshot_id_inclusive=ids[end]
                )
                for each in (table, mine)
            ]
            assert [each.service is not None for each in scans] == [True, False]
            found, wanted = (sorted(map(str, each.to_arrow().to_pylist())) for each in scans)
            assert found == wanted
            assert scans[0].count() == scans[1].count()


def test_statistics_that_java_sends_are_those_of_the_manifests(uri: str, table: Table) -> None:
    def statistics(scanned: Table) -> dict[str, object]:
        return {
            task.file.file_path: [
                dict(getattr(task.file, name))
                for name in (
                    "column_sizes",
                    "value_counts",
                    "null_value_counts",
                    "nan_value_counts",
                    "lower_bounds",
                    "upper_bounds",
                )
            ]
            for task in scanned.scan().plan_files(include_stats=True)
        }

    with load_catalog("here", type="rest", uri=uri) as here:
        wanted = statistics(here.load_table("db.t"))
    found = statistics(table)
    assert found == wanted
    assert all(each[4] for each in found.values())  # type: ignore[index]


def test_a_plan_of_java_as_a_table_has_the_files_of_one_made_here(uri: str, table: Table) -> None:
    names = ["file_path", "spec_id", "record_count", "partition", "delete_files"]
    with load_catalog("here", type="rest", uri=uri) as here:
        wanted = here.load_table("db.t").scan("id != 4").plan_arrow().select(names)
    found = table.scan("id != 4").plan_arrow().select(names)
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, wanted.to_pylist()))
