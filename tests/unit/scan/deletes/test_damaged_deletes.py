"""Damaged or hostile delete files are one typed error."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from delete_files import commit, data_files, deletion_vectors, equality_deletes, position_deletes, write_file
from deleted_tables import each_format, path_of, table_of
from hypothesis import given, settings
from hypothesis import strategies as st
from icefield.abc import FormatReader, PutMode, ReadRequest
from icefield.catalog import Table
from icefield.errors import InvalidFile, InvalidMetadata, UnsupportedFeature
from icefield.manifest import DataFile, DataFileContent
from icefield.scan import FileScanTask, read_tasks
from icefield.scan.opening import deleted_rows, open_file
from icefield.schema import Schema
from icefield.types.reserved import DELETE_FILE_PATH, DELETE_FILE_POS
from outcomes import Outcomes
from tables import rows


def _reading(table: Table, file: DataFile) -> tuple[FormatReader, ReadRequest]:
    reader = open_file(table.io, file).__enter__()
    return reader, ReadRequest(reader.schema)


class TestDamage:
    @pytest.mark.spec("DEL-43")
    def test_vectors_that_are_not_those_of_the_file(self) -> None:
        table = table_of(rows(range(10)), version=3)
        (file,) = data_files(table)
        (good,) = deletion_vectors(table, {file: [1, 3]})
        for wrong in (
            {"record_count": 3}, {"content_offset": 5}, {"content_size_in_bytes": 30}, {"content_offset": 10**9},
            {"content_size_in_bytes": 2**40}, {"content_offset": 0},
        ):  # fmt: skip
            branch = table_of(rows(range(10)), version=3)
            (other,) = data_files(branch)
            (vector,) = deletion_vectors(branch, {other: [1, 3]})
            commit(branch, replace(vector, **wrong))
            with pytest.raises(InvalidFile) as caught:
                branch.scan().to_arrow()
            assert caught.value.data["location"] == vector.file_path
        (beyond,) = deletion_vectors(table, {file: [1, 10]})
        commit(table, beyond)
        with pytest.raises(InvalidFile, match="position 10 in a file of 10 rows"):
            table.scan().to_arrow()
        assert good.is_deletion_vector

    def test_a_vector_whose_place_is_not_stated(self) -> None:
        table = table_of(rows(range(4)), version=3)
        task = next(iter(table.scan().plan_files()))
        (vector,) = deletion_vectors(table, {task.file: [1]})
        for wrong in ({"content_offset": None}, {"content_size_in_bytes": None}, {"content_offset": -1}):
            broken = FileScanTask(task.file, delete_files=(replace(vector, **wrong),))
            with pytest.raises(InvalidMetadata, match="where a deletion vector is"):
                list(read_tasks([broken], table.scan().context))

    @each_format
    def test_position_deletes_with_other_field_ids_after_valid_ones(self, file_format: str) -> None:
        table = table_of(rows(range(4)))
        (file,) = data_files(table)
        commit(table, position_deletes(table, [(file.file_path, 1)], file_format))
        assert table.scan().count() == 3
        named = Schema(replace(DELETE_FILE_PATH, field_id=1), replace(DELETE_FILE_POS, field_id=2))
        stored = pa.table({"file_path": [file.file_path], "pos": pa.array([2], pa.int64())})
        content = DataFileContent.POSITION_DELETES
        commit(table, write_file(table, named, stored, file_format, content=content))
        with pytest.raises(InvalidFile, match="file_path"):
            table.scan().count()

    def test_equality_deletes_without_columns(self) -> None:
        table = table_of(rows(range(4)))
        keys = equality_deletes(table, ["id"], [{"id": 1}])
        task = next(iter(table.scan().plan_files()))
        for ids_, error in (
            (None, InvalidMetadata),
            ((), InvalidMetadata),
            ((2,), InvalidFile),
            ((99,), InvalidMetadata),
        ):
            broken = FileScanTask(task.file, delete_files=(replace(keys, equality_ids=ids_),))
            with pytest.raises(error):
                list(read_tasks([broken], table.scan().context))

    @each_format
    def test_positions_that_cannot_be(self, file_format: str) -> None:
        table = table_of(rows(range(4)))
        commit(table, position_deletes(table, [(path_of(table), -1)], file_format))
        with pytest.raises(InvalidFile, match="deletes a row at -1"):
            table.scan().to_arrow()

    def test_deletes_that_were_cut_off_where_nothing_states_their_number(self) -> None:
        table = table_of(rows(range(4)))
        delete = position_deletes(table, [(path_of(table), 1)], "avro", record_count=2)
        size = delete.file_size_in_bytes
        with pytest.raises(InvalidFile, match="holds 1 rows, and its manifest says 2"):
            list(deleted_rows(table.io, replace(delete, file_size_in_bytes=size + 9), *_reading(table, delete)))
        assert sum(batch.num_rows for batch in deleted_rows(table.io, delete, *_reading(table, delete))) == 1

    @pytest.mark.slow
    @pytest.mark.parametrize("kind", ["position", "equality", "vector"])
    @each_format
    def test_damaged_bytes_are_one_typed_error_or_rows(self, kind: str, file_format: str) -> None:
        table = table_of(rows(range(50)), version=3 if kind == "vector" else 2, file_format=file_format)
        (file,) = data_files(table)
        if kind == "position":
            delete = position_deletes(table, [(file.file_path, n) for n in range(0, 50, 3)], file_format)
        elif kind == "equality":
            delete = equality_deletes(table, ["id"], [{"id": n} for n in range(0, 50, 3)], file_format)
        else:
            (delete,) = deletion_vectors(table, {file: range(0, 50, 3)})
        context = table.scan().context
        whole = table.io.read(delete.file_path)

        outcomes = Outcomes()

        @given(st.data())
        @settings(max_examples=60, deadline=None)
        def check(data: st.DataObject) -> None:
            damaged = bytearray(whole)
            for _ in range(data.draw(st.integers(0, 4))):
                damaged[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
            cut = data.draw(st.one_of(st.just(len(whole)), st.integers(0, len(whole))))
            table.io.put(delete.file_path, bytes(damaged[:cut]), PutMode.OVERWRITE)
            with outcomes.of("damaged", InvalidFile, UnsupportedFeature):
                batches = read_tasks([FileScanTask(file, delete_files=(delete,))], context)
                assert sum(batch.num_rows for batch in batches) <= 50

        check()
        outcomes.check()
