"""Position delete files of one data file that state it by the bounds of their paths alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from delete_files import data_files
from icefield.catalog import Table
from icefield.errors import InvalidArgument, ValidationFailed
from icefield.manifest import DataFile
from icefield.transaction import RowDelta
from icefield.writing import DeleteContext, DeletedRows, write_position_deletes
from tables import ids, meddled, new_table, rows


def table_of(granularity: str) -> Table:
    table = new_table(properties={"format-version": "2", "write.delete.granularity": granularity})
    for number in range(2):
        table.append(rows(range(number * 10, number * 10 + 10)))
    return table


def deletes_of(table: Table, positions: dict[DataFile, list[int]]) -> list[DataFile]:
    context = DeleteContext.from_metadata(table.metadata, table.io)
    return write_position_deletes(
        context, [DeletedRows(file, np.array(some, np.int64)) for file, some in positions.items()]
    )


def delta(table: Table) -> RowDelta:
    return table.update_snapshot().row_delta()


def unnamed(made: list[DataFile]) -> list[DataFile]:
    """Position delete files as older writers describe them: by equal bounds of the paths alone."""
    return [replace(file, referenced_data_file=None) for file in made]


def test_a_removed_data_file_takes_deletes_with_it_that_only_their_bounds_name() -> None:
    table = table_of("file")
    first, second = data_files(table)
    delta(table).add_deletes(*unnamed(deletes_of(table, {first: [0], second: [0]}))).commit()
    delta(table).remove_rows(first).commit()
    assert ids(table) == [*range(11, 20)]
    assert table.inspect.delete_files().to_pydict()["record_count"] == [1]


def test_a_data_file_of_deletes_that_only_their_bounds_name_is_checked() -> None:
    table = table_of("file")
    first, second = data_files(table)
    made = unnamed(deletes_of(table, {first: [1], second: [1]}))
    with pytest.raises(InvalidArgument, match="is removed, and deletes of it are added"):
        delta(table).remove_rows(first).add_deletes(*made).commit()
    since = table.current_snapshot()
    assert since is not None
    holder = meddled(table, lambda other: other.delete("id < 10"))
    delta(holder).add_deletes(*made).validate_from_snapshot(since.snapshot_id).commit()
    assert ids(holder) == [10, *range(12, 20)]
    assert len(holder.inspect.delete_files()) == 1
    with pytest.raises(ValidationFailed, match="cannot delete rows of data files"):
        delta(holder).add_deletes(*unnamed(deletes_of(table, {first: [2]}))).commit()


def test_deletes_of_several_data_files_stay_when_one_of_these_is_removed() -> None:
    table = table_of("partition")
    first, second = data_files(table)
    delta(table).add_deletes(*deletes_of(table, {first: [0], second: [0]})).commit()
    delta(table).remove_rows(first).commit()
    assert ids(table) == [*range(11, 20)]
    assert len(table.inspect.delete_files()) == 1
