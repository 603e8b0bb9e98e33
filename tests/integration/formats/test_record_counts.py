"""Files whose number of rows differs from their manifest: every operation that reads them follows one rule."""

from dataclasses import replace

import pyarrow as pa
import pytest
from icefield.engine import read_task
from icefield.errors import InvalidArgument, InvalidFile
from tables import entries, ids, manifests, new_table, rows

FORMATS = ("parquet", "orc", "avro")
FILTERS = ("id >= 0", "id > 1", "kind = 'a'", "value < 9 and id != 2")


def table_of(file_format, claimed, *, version="2", partition_spec=None, footers=True):
    """A table of two files of three rows each; the manifest states ``claimed`` rows for the first file."""
    properties = {"write.format.default": file_format, "format-version": version}
    other = new_table(partition_spec, properties=properties)
    other.append(rows([1, 2, 3]))
    (file,) = entries(other, manifests(other)[0]).data_files()
    table = new_table(partition_spec, properties=properties)
    action = table.update_snapshot().merge_append().append_file(file)
    object.__setattr__(file, "record_count", claimed)  # as a writer states it that is wrong
    action.commit()
    table.append(rows([11, 12, 13], "b"))
    return table, file.file_path


def refused(path):
    """The error for such a file. An Avro file does not state its number of rows, so reading counts them."""
    rows = "(at least )?3" if path.endswith(".avro") else "3"
    return pytest.raises(InvalidFile, match=f"{path} holds {rows} rows, and its manifest says")


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("claimed", [0, 2, 5, 2**62])
def test_a_file_that_contradicts_its_manifest_is_refused_wherever_it_is_opened(file_format, claimed):
    table, path = table_of(file_format, claimed)
    snapshot = table.current_snapshot()
    with refused(path) as raised:
        table.scan().to_arrow()
    assert raised.value.location == path
    for text in FILTERS:
        with refused(path):
            table.scan(text).to_arrow()
        with refused(path):
            list(table.scan(text).to_arrow_batch_reader())
    for text in ("id = 2", "id > 1 and id < 12"):
        with refused(path):
            table.scan(text).count()
        with refused(path):
            table.delete(text)
        with refused(path):
            table.overwrite(rows([7]), text)
    with refused(path):
        table.upsert(rows([2], value=3.0), ["id"])
    assert table.refresh().current_snapshot() == snapshot
    assert ids(table, "id > 10") == [11, 12, 13]


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("text", FILTERS)
def test_a_claim_of_no_rows_hides_none_and_drops_none(file_format, text):
    table, path = table_of(file_format, 0)
    for road in (
        table.scan(text).to_arrow,
        table.scan(text).count,
        table.scan().count,
        lambda: table.delete(f"{text} and id != 3"),
        lambda: table.overwrite(rows([7]), f"{text} and id != 3"),
    ):
        with refused(path):
            road()


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_count_that_is_not_known_changes_nothing(file_format):
    table, _ = table_of(file_format, -1)
    assert ids(table) == [1, 2, 3, 11, 12, 13]
    assert table.scan().count() == 6
    for text in FILTERS:
        found = table.scan(text).to_arrow()
        assert table.scan(text).count() == found.num_rows > 0
    table.delete("id = 2")
    assert ids(table) == [1, 3, 11, 12, 13]
    other, _ = table_of(file_format, -1)
    other.delete("id < 10")
    assert ids(other) == [11, 12, 13]


@pytest.mark.parametrize("file_format", FORMATS)
def test_count_takes_the_manifest_at_its_word_for_what_it_does_not_open(file_format):
    table, path = table_of(file_format, 5)
    assert table.scan().count() == 8
    assert table.scan("id < 100").count() == 8
    table, path = table_of(file_format, 2**62)
    for _ in range(2):
        table.update_snapshot().merge_append().append_file(replaced(table, path)).commit()
    assert table.scan().count() == 3 * 2**62 + 3


def replaced(table, path):
    (file,) = [task.file for task in table.scan().plan_files() if task.file.file_path == path]
    count = sum(1 for _ in table.scan().plan_files())
    return replace(file, file_path=f"{path}-{count}")


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_each_split_of_such_a_file_is_refused(file_format):
    table, path = table_of(file_format, 2)
    (whole,) = [task for task in table.scan().plan_files() if task.file.file_path == path]
    half = whole.length // 2
    for piece in (whole.part(0, half), whole.part(half, whole.length - half)):
        with refused(path):
            list(read_task(piece, table.scan().context))


@pytest.mark.parametrize("file_format", FORMATS)
def test_such_a_file_gives_no_row_ids(file_format):
    table, path = table_of(file_format, 2, version="3")
    with refused(path):
        table.scan(selected_fields=("id", "_row_id")).to_arrow()


@pytest.mark.parametrize("file_format", FORMATS)
def test_files_after_one_of_unknown_count_have_no_row_ids_rather_than_those_of_others(file_format):
    table, _ = table_of(file_format, -1, version="3")
    table.append(rows([21]))
    found = table.scan(selected_fields=("id", "_row_id")).to_arrow()
    assert sorted(found["id"].to_pylist()) == [1, 2, 3, 11, 12, 13, 21]
    known = [number for number in found["_row_id"].to_pylist() if number is not None]
    assert len(known) == len(set(known)) == 4
    assert table.metadata.next_row_id > max(known)


def test_a_data_file_without_a_count_is_not_added():
    table = new_table()
    table.append(rows([1]))
    (file,) = entries(table, manifests(table)[0]).data_files()
    with pytest.raises(InvalidArgument, match="count them first") as raised:
        table.update_snapshot().fast_append().append_file(replace(file, file_path="memory://x", record_count=-1))
    assert raised.value.location == "memory://x"


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_filter_on_a_partition_alone_drops_and_counts_by_the_manifest(file_format):
    table, _ = table_of(file_format, 2, partition_spec=["kind"])
    assert table.scan("kind = 'a'").count() == 2
    table.delete("kind = 'a'")
    assert ids(table) == [11, 12, 13]
    assert pa.types.is_int64(table.scan().to_arrow()["id"].type)
