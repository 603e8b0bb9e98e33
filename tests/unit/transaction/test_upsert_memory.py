"""The memory of an upsert: bounded by files and buffers, not by the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from bounded import bounded
from icefield.catalog import load_catalog

FILES, ROWS, WIDTH = 12, 200_000, 12


def wide(ids: np.ndarray, value: float) -> pa.Table:
    columns = {f"c{number}": (ids + 1) * (value + number) for number in range(WIDTH)}
    return pa.table({"id": ids, "part": ids % 7, **columns})


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_an_upsert_that_concerns_every_file_holds_few_of_them(mode: str, tmp_path: Path) -> None:
    catalog = load_catalog("memory-of-upserts", type="directory", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    properties = {"write.merge.mode": mode}
    table = catalog.create_table("db.t", wide(np.arange(1), 1.0).schema, properties=properties)
    total = 0
    for number in range(FILES):
        part = wide(np.arange(number * ROWS, (number + 1) * ROWS), 1.0)
        total += part.nbytes
        table.append(part)
    del part
    table.upsert(wide(np.arange(10), 3.0), ["id", "part"])  # what is made once in a process is there
    given = wide(np.arange(0, FILES * ROWS, 20), 5.0)
    megabytes = (total >> 20) // 2
    with bounded(seconds=60, megabytes=megabytes):
        result = table.upsert(given, ["id", "part"])
    assert (result.rows_updated, result.rows_inserted) == (given.num_rows, 0)
    assert table.scan().count() == FILES * ROWS
