"""A table whose files are of three formats and five versions of its schema. Spark reads the same in its own tests."""

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from icefield.scan import read_tasks
from icefield.schema import schema_to_arrow
from mixed_tables import EACH, MIXED_FILTERS, mixed_rows, mixed_table
from tables import memory_catalog


@pytest.fixture(scope="module")
def table():
    return mixed_table(memory_catalog(), "db.mixed")


def rows_of(found):
    return sorted(found.to_pylist(), key=lambda row: row["id"])


@pytest.mark.spec("PRJ-01", "PRJ-16", "TYP-29", "DEF-02", "SCH-30")
def test_the_table_has_files_of_each_format_for_each_version_of_its_schema(table):
    files = [task.file for task in table.scan().plan_files()]
    formats = Counter(file.file_format.lower() for file in files)
    assert set(formats) == {"parquet", "orc", "avro"}
    assert min(formats.values()) >= 5
    assert len(table.metadata.schemas) == 5
    assert sum(file.record_count for file in files) == 5 * EACH


def test_it_scans_right(table):
    assert rows_of(table.scan().to_arrow()) == mixed_rows()
    assert list(mixed_rows()[0]) == [field.name for field in table.schema().fields]
    assert table.scan().to_arrow().schema.equals(schema_to_arrow(table.schema()))


@pytest.mark.parametrize("text", MIXED_FILTERS)
@pytest.mark.spec("SCAN-04", "DEF-15")
def test_it_filters_right(table, text):
    wanted = [row for row in mixed_rows() if MIXED_FILTERS[text](row)]
    assert 0 < len(wanted) < 5 * EACH
    assert rows_of(table.scan(text).to_arrow()) == wanted
    assert table.scan(text).count() == len(wanted)
    narrow = table.scan(text, selected_fields=("id", "place.alt")).to_arrow()
    assert rows_of(narrow) == [
        {"id": row["id"], "place": row["place"] and {"alt": row["place"]["alt"]}} for row in wanted
    ]


def test_it_reads_in_pieces(table):
    scan = replace(table.scan(), options={"split-size": "1"})
    tasks = [task for group in scan.plan_tasks() for task in group]
    assert len(tasks) >= 15
    found = pa.Table.from_batches(read_tasks(tasks, scan.context), schema_to_arrow(table.schema()))
    assert rows_of(found) == mixed_rows()


def test_earlier_snapshots_have_the_schema_of_their_time(table):
    for snapshot in table.snapshots():
        scan = table.scan(snapshot_id=snapshot.snapshot_id)
        names = [field.name for field in scan.projection.fields]
        assert ("name" in names) == (snapshot.schema_id in (0, 4))
        ids = {row["id"] for row in scan.to_arrow().to_pylist()}
        assert ids == set(range(len(ids)))
