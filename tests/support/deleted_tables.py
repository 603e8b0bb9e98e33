"""Tables to delete rows of, in each file format."""

from __future__ import annotations

from typing import Any

import pytest
from delete_files import data_files
from icefield.catalog import Table
from tables import new_table

FORMATS = ("parquet", "avro", "orc")
each_format = pytest.mark.parametrize("file_format", FORMATS)


def table_of(*files: Any, partition: Any = None, version: int = 2, file_format: str = "parquet", **given: Any) -> Table:
    """A table with a data file for each of the rows given."""
    table = new_table(partition, **{"format-version": str(version), "write.format.default": file_format, **given})
    for part in files:
        table.append(part)
    return table


def path_of(table: Table, at: int = 0) -> str:
    return data_files(table)[at].file_path
