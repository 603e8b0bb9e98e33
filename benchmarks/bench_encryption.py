"""Encrypted tables against plain ones: appending and scanning rows, and planning with nothing decoded beforehand.

    python benchmarks/bench_encryption.py [--rows 500000] [--files 400]

By CPU time, appends and scans of an encrypted table cost at most 1.25 times those of a plain one, planning 1.3 times.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
from harness import cold, compare, main
from icefield_encryption.local_keystore import add_key

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("value", pa.float64()), ("day", pa.date32())])
MOST, MOST_PLANNING = 1.25, 1.3
FORMATS = ("parquet", "avro", "orc")


def rows(count: int, first: int = 0) -> pa.Table:
    ids = range(first, first + count)
    names = [f"customer {each * 7919 % 100_003}" for each in ids]
    values = [each * 0.25 for each in ids]
    days = pa.array([each % 20_000 for each in ids], pa.int32()).cast(pa.date32())
    return pa.table([pa.array(ids, pa.int64()), names, pa.array(values), days], schema=SCHEMA)


def tables(catalog: icefield.Catalog, name: str, **properties: str) -> tuple[icefield.Table, icefield.Table]:
    """A new encrypted table and a new plain one."""
    given = {"format-version": "3", **properties}
    secret = catalog.create_table(f"db.{name}_secret", SCHEMA, properties={**given, "encryption.key-id": "master"})
    return secret, catalog.create_table(f"db.{name}_plain", SCHEMA, properties=given)


def run(count: int = 500_000, files: int = 400) -> None:
    folder = Path(tempfile.mkdtemp(prefix="icefield-bench-"))
    try:
        add_key(folder / "keys.json", "master")
        properties = {
            "type": "directory",
            "warehouse": str(folder / "warehouse"),
            "file.sync": "false",
            "encryption.kms-type": "local",
            "encryption.local.keystore": str(folder / "keys.json"),
        }
        with icefield.load_catalog("c", **properties) as catalog:
            catalog.create_namespace("db")
            for file_format in FORMATS:
                _rows(catalog, file_format, count)
            _planning(catalog, files)
    finally:
        shutil.rmtree(folder)


def _rows(catalog: icefield.Catalog, file_format: str, count: int) -> None:
    secret, plain = tables(catalog, file_format, **{"write.format.default": file_format})
    data = rows(count)
    timed: dict[str, Any] = {"runs": 5, "floor": 1 / MOST, "rows": count, "clock": time.process_time}
    compare(f"{file_format}: append", lambda: secret.append(data), lambda: plain.append(data), **timed)
    # Both have the same number of files, so that a scan of one snapshot reads as much as of the other.
    compare(
        f"{file_format}: scan",
        cold(lambda: secret.scan().to_arrow()),
        cold(lambda: plain.scan().to_arrow()),
        **timed,
    )


def _planning(catalog: icefield.Catalog, files: int) -> None:
    secret, plain = tables(catalog, "planned", **{"commit.manifest-merge.enabled": "false"})
    for table in (secret, plain):
        queue = table.append_queue()
        for number in range(files):
            queue.append(rows(10, number * 10))
        table.refresh()
    for name, row_filter in (("all files", "true"), ("a file", "id = 55")):
        compare(
            f"plan {name} of {files}, cold",
            cold(lambda row_filter=row_filter: list(secret.scan(row_filter).plan_files())),
            cold(lambda row_filter=row_filter: list(plain.scan(row_filter).plan_files())),
            runs=9,
            floor=1 / MOST_PLANNING,
            clock=time.process_time,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--files", type=int, default=400)
    given = parser.parse_args()
    main(lambda: run(given.rows, given.files))
