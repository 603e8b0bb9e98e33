"""A filter is bound once for a scan, and projected once for each partition spec, however many files are read."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from delete_files import commit, data_files, equality_deletes
from icefield.expressions import Residuals, binding
from tables import new_table, rows


def partitioned(files: int) -> Any:
    """A table of two partition specs, each with some files in three partitions."""
    table = new_table()
    table.update_spec().add_field("id", "bucket[3]").commit()
    for start in range(0, 10 * files, 10):
        table.append(rows(range(start, start + 10)))
    table.update_spec().add_field("kind", "identity").commit()
    table.append(rows(range(1000, 1010)))
    return table


@pytest.mark.parametrize("files", [1, 4])
def test_a_scan_binds_and_projects_its_filter_as_often_for_many_files_as_for_one(files: int) -> None:
    table = partitioned(files)
    commit(table, equality_deletes(table, ["value"], [{"value": 2.0}], like=data_files(table)[0]))
    lookups = mock.Mock(wraps=binding._ColumnLookup)
    projected = mock.Mock(wraps=Residuals)
    with (
        mock.patch.object(binding, "_ColumnLookup", lookups),
        mock.patch("icefield.scan.planning.manifest_filter.Residuals", projected),
    ):
        found = table.scan("id >= 3 and value < 100000 and kind is not null").to_arrow()
    assert found.num_rows
    assert lookups.call_count == 1
    assert projected.call_count == 2
