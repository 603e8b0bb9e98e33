"""A table for adapters of frame libraries: of many types, with deletes, evolved schemas and evolved partitions."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from icefield import Plugins, Table, load_catalog
from icefield.abc import ScanPlanned
from tables import Listener

START = dt.datetime(2024, 1, 1)


def frame_rows(count: int, seed: int) -> pa.Table:
    """Random rows; of each column, one value in eight is null."""
    rng = np.random.default_rng(seed)

    def column(values: Any, kind: pa.DataType) -> pa.Array:
        return pa.array(list(values), kind, mask=rng.random(count) < 1 / 8)

    floats = rng.choice([0.0, -0.0, float("nan"), 1.5, -1.5, float("inf"), 0.1, 7.0], count)
    numbers = rng.integers(-5, 6, count)
    columns = {
        "id": pa.array(range(seed * count, (seed + 1) * count), pa.int64()),
        "i": column(numbers.tolist(), pa.int32()),
        "f": column(floats.astype(np.float32).tolist(), pa.float32()),
        "d": column(floats.tolist(), pa.float64()),
        "s": column(rng.choice(["", "a", "ab", "b", "ä", "a%", "z"], count).tolist(), pa.string()),
        "b": column((rng.random(count) < 0.5).tolist(), pa.bool_()),
        "day": column([START.date() + dt.timedelta(days=int(n)) for n in numbers], pa.date32()),
        "ts": column([START + dt.timedelta(hours=12 * int(n)) for n in numbers], pa.timestamp("us")),
        "tz": column([START + dt.timedelta(hours=12 * int(n)) for n in numbers], pa.timestamp("us", "UTC")),
        "dec": column([Decimal(int(n)) / 2 for n in numbers], pa.decimal128(9, 2)),
        "bin": column([bytes([int(n) + 5]) for n in numbers], pa.binary()),
        "st": column([{"q": None if n == 3 else int(n), "t": f"t{n}"} for n in numbers], STRUCT),
    }
    return pa.table(columns)


STRUCT = pa.struct([("q", pa.int64()), ("t", pa.string())])


def frame_table(
    uri: str, files: int = 4, count: int = 40, *, is_clean: bool = False, **properties: str
) -> tuple[Table, Listener]:
    """A table at a location, and the listener that hears how its scans are planned.

    ``is_clean``: a table without deletes and with one schema.
    """
    heard = Listener()
    catalog = load_catalog("frames", type="directory", warehouse=uri, plugins=Plugins.installed(extra=[heard]))
    catalog.create_namespace("db")
    schema = frame_rows(1, 0).schema
    given = {"write.delete.mode": "merge-on-read", **properties}
    table = catalog.create_table("db.t", schema, partition_spec=["bucket[2](id)"], properties=given)
    for seed in range(files):
        if seed == files // 2 and not is_clean:
            with table.update_schema() as schema_update:
                schema_update.rename_column("s", "name").update_column("i", "long").add_column("new", "int")
            with table.update_spec() as spec:
                spec.add_field("day", "month")
        rows = frame_rows(count, seed)
        if seed >= files // 2 and not is_clean:
            names = ["name" if name == "s" else name for name in rows.column_names]
            rows = rows.rename_columns(names).append_column("new", rows["i"])
            rows = rows.set_column(1, "i", rows["i"].cast(pa.int64()))
        table.append(rows)
    if is_clean:
        return table, heard
    table.delete("id < 7 or id = 100")
    return table, heard


def files_planned(heard: Listener) -> int:
    """The number of data files of the last plan."""
    return int(heard.of(ScanPlanned)[-1].files_planned)
