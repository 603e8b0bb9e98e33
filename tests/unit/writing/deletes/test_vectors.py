"""Writing deletion vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import icefield
import numpy as np
import pytest
from delete_files import commit, data_files
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield import MemoryFileSystem
from icefield.catalog import Table
from icefield.errors import FileExists, InvalidArgument, StorageError, UnsupportedFeature
from icefield.manifest import DataFile, DataFileContent
from icefield.puffin import decode_vector
from icefield.writing import DeleteContext, DeletedRows, write_deletion_vectors
from icefield_maintenance import PuffinReader
from tables import ids, new_table, rows


def table_of(files: int = 2, count: int = 10, **properties: str) -> Table:
    table = new_table(properties={"format-version": "3", **properties})
    for number in range(files):
        table.append(rows(range(number * count, (number + 1) * count)))
    return table


def context_of(table: Table, **properties: str) -> DeleteContext:
    return DeleteContext.from_metadata(table.metadata, table.io, properties=properties)


def deleted(file: DataFile, *positions: int) -> DeletedRows:
    return DeletedRows(file, np.array(positions, np.int64))


def files_below(table: Table) -> set[str]:
    return {info.location for info in table.io.list_files(f"{table.location()}/data")}


@pytest.mark.spec("DEL-30", "DEL-36", "DEL-37", "DEL-45", "MAN-50", "MAN-51", "MAN-52", "PUF-08", "PUF-09")
def test_one_puffin_file_holds_the_vectors_of_many_data_files() -> None:
    table = table_of()
    files = data_files(table)
    made = write_deletion_vectors(context_of(table), [deleted(files[0], 3, 4), deleted(files[1], 0)])
    location = made[0].file_path
    assert location.endswith("-deletes.puffin")
    with PuffinReader(table.io.open_input(location), location) as reader:
        assert reader.properties == {"created-by": f"Icefield {icefield.__version__}"}
        for file, vector, blob, positions in zip(files, made, reader.blobs, ([3, 4], [0]), strict=True):
            assert (vector.file_path, vector.file_format) == (location, "puffin")
            assert vector.content is DataFileContent.POSITION_DELETES
            assert vector.referenced_data_file == file.file_path
            assert (vector.content_offset, vector.content_size_in_bytes) == (blob.offset, blob.length)
            assert vector.record_count == len(positions)
            assert vector.file_size_in_bytes == len(table.io.read(location))
            assert blob.type == "deletion-vector-v1"
            assert blob.fields == (2147483645,)
            assert (blob.snapshot_id, blob.sequence_number, blob.compression_codec) == (-1, -1, None)
            assert blob.strings == {"referenced-data-file": file.file_path, "cardinality": str(len(positions))}
            assert decode_vector(reader.read(blob), location).tolist() == positions
    commit(table, *made)
    assert ids(table) == sorted(set(range(20)) - {3, 4, 10})


def test_vectors_have_the_spec_and_partition_of_their_data_file() -> None:
    table = new_table(properties={"format-version": "3"})
    with table.update_spec() as update:
        update.add_identity("kind")
    table.append(rows(range(4), "a"))
    table.append(rows(range(4, 8), "b"))
    files = data_files(table)
    made = write_deletion_vectors(context_of(table), [deleted(file, 1) for file in files])
    assert [(each.spec_id, each.partition) for each in made] == [(each.spec_id, each.partition) for each in files]
    assert len({each.file_path for each in made}) == 1
    commit(table, *made)
    assert ids(table) == [0, 2, 3, 4, 6, 7]


def test_a_puffin_file_ends_at_the_target_size() -> None:
    table = table_of(6)
    files = data_files(table)
    context = context_of(table, **{"write.delete.target-file-size-bytes": "1000"})
    made = write_deletion_vectors(context, [deleted(file, 0) for file in files])
    assert 1 < len({each.file_path for each in made}) < 6
    commit(table, *made)
    assert len(ids(table)) == 54


def test_rows_of_one_data_file_make_one_vector() -> None:
    table = table_of(1)
    (file,) = data_files(table)
    (made,) = write_deletion_vectors(context_of(table), [deleted(file, 1, 3), deleted(file, 0, 3)])
    assert made.record_count == 3
    assert write_deletion_vectors(context_of(table), [deleted(file)]) == []


@pytest.mark.spec("DEL-31")
@pytest.mark.parametrize("version", [1, 2])
def test_older_versions_have_no_vectors(version: int) -> None:
    table = new_table(properties={"format-version": str(version)})
    table.append(rows(range(3)))
    with pytest.raises(UnsupportedFeature, match="no deletion vectors; upgrade it to version 3"):
        write_deletion_vectors(context_of(table), [deleted(data_files(table)[0], 1)])


@pytest.mark.spec("DEL-42")
def test_positions_that_are_none_are_refused_and_leave_no_file() -> None:
    table = table_of()
    first, second = data_files(table)
    before = files_below(table)
    for wrong in (deleted(second, -1), deleted(second, 10), deleted(replace(second, spec_id=9), 1)):
        with pytest.raises(InvalidArgument):
            write_deletion_vectors(context_of(table), [deleted(first, 1), wrong])
    assert files_below(table) == before


def test_an_error_leaves_no_file_and_each_location_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(4)
    before, noted = files_below(table), []
    opening = MemoryFileSystem.open_output

    def second_fails(self: MemoryFileSystem, location: str) -> Any:
        if len(noted) > 1:
            raise StorageError("the disk is full")
        return opening(self, location)

    monkeypatch.setattr(MemoryFileSystem, "open_output", second_fails)
    context = context_of(table, **{"write.delete.target-file-size-bytes": "1"})
    with pytest.raises(StorageError, match="disk is full"):
        write_deletion_vectors(context, [deleted(file, 0) for file in data_files(table)], note=noted.append)
    assert files_below(table) == before
    assert len(noted) == 2


def test_a_file_of_the_same_name_is_let_be() -> None:
    table = table_of()
    context = context_of(table)
    made = write_deletion_vectors(context, [deleted(data_files(table)[0], 1)])
    with pytest.raises(FileExists):
        write_deletion_vectors(context, [deleted(data_files(table)[1], 1)])
    commit(table, *made)
    assert len(ids(table)) == 19
    assert write_deletion_vectors(context, [deleted(data_files(table)[1], 1)], attempt=1)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.sets(st.integers(0, 199)), min_size=1, max_size=3), st.sampled_from([1, 2000, 1 << 20]))
def test_what_is_written_is_what_a_scan_leaves_out(chosen: list[set[int]], target: int) -> None:
    table = table_of(len(chosen), 200)
    files = data_files(table)
    context = context_of(table, **{"write.delete.target-file-size-bytes": str(target)})
    given_rows = [deleted(file, *sorted(some)) for file, some in zip(files, chosen, strict=True)]
    commit(table, *write_deletion_vectors(context, given_rows))
    gone = {number * 200 + place for number, some in enumerate(chosen) for place in some}
    assert ids(table) == sorted(set(range(200 * len(chosen))) - gone)
