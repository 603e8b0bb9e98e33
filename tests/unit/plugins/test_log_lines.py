"""The log says which files were planned, skipped and written, and how long it took."""

from __future__ import annotations

import logging
import re

import pytest
from icefield.errors import NoSuchTable
from tables import memory_catalog


def lines(log: pytest.LogCaptureFixture) -> list[str]:
    return [re.sub(r"\d+\.\d{3} s|snapshot \d+", "...", each.getMessage()) for each in log.records]


def used(log: pytest.LogCaptureFixture, level: int) -> list[str]:
    catalog = memory_catalog()
    table = catalog.create_table_as("db.t", {"id": [1]}, partition_spec=["id"])
    table.append({"id": [2]})
    log.set_level(level, logger="icefield")
    log.clear()
    table.append({"id": [3]})
    assert table.scan("id = 3").to_arrow().num_rows == 1
    with pytest.raises(NoSuchTable):
        catalog.load_table("db.u")
    return lines(log)


def test_info_tells_of_scans_and_commits(caplog: pytest.LogCaptureFixture) -> None:
    assert used(caplog, logging.INFO) == [
        "committed append to db.t in ..., attempt 1: ...; added-data-files 1, added-records 1",
        "planned a scan of db.t in ...: 1 files and 0 skipped; 1 manifests read and 2 skipped",
    ]


def test_debug_tells_of_operations_and_filters(caplog: pytest.LogCaptureFixture) -> None:
    found = used(caplog, logging.DEBUG)
    assert "commit of db.t took ..." in found
    assert "the scan of db.t had the filter: id = 3" in found
    assert "load-table of db.u failed after ...: NoSuchTable" in found


def test_other_levels_have_no_line(caplog: pytest.LogCaptureFixture) -> None:
    assert used(caplog, logging.WARNING) == []
