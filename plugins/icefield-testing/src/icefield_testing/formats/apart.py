"""Reads files in another process: a library that ends its process on damage is found, and ends no run of tests.

A fresh interpreter runs this file where the format does not survive a fork, so it imports little.
"""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa
from icefield.abc import FileFormat, ReadRequest
from icefield.errors import IcefieldError, InvalidFile
from icefield.toolkit import BytesInput

DAMAGED: Final = "memory://damaged/file"
"""The location that the files are said to have."""


def read_each(file_format: FileFormat, files: Iterable[bytes], results: IO[bytes]) -> None:
    """Read each file, and append the outcome to the results before the next is read."""
    for data in files:
        pickle.dump(_outcome(file_format, data), results)
        results.flush()


def _outcome(file_format: FileFormat, data: bytes) -> Mapping[str, Any]:
    began, before = time.monotonic(), pa.total_allocated_bytes()
    found: dict[str, Any] = {"rows": None, "numbers": None, "error": None}
    try:
        table = read_strictly(file_format, data)
        found["rows"] = table.num_rows
        if "n" in table.column_names:
            found["numbers"] = table.column("n").to_pylist()
    except BaseException as error:  # a panic of a library in Rust is no Exception
        known = isinstance(error, IcefieldError)
        location = error.data.get("location") if isinstance(error, IcefieldError) else None
        found |= {"error": f"{type(error).__name__}: {error}", "known": known, "location": location}
        found["refused"] = isinstance(error, InvalidFile)
    return {**found, "seconds": time.monotonic() - began, "allocated": pa.total_allocated_bytes() - before}


def read_strictly(file_format: FileFormat, data: bytes) -> pa.Table:
    """Read bytes as a file, and access every value."""
    with file_format.open_reader(BytesInput(data), DAMAGED, size=len(data)) as reader:
        got = pa.Table.from_batches(reader.read(ReadRequest(reader.schema)), reader.schema)
    try:
        got.validate(full=True)
    except pa.ArrowInvalid as error:
        # The original bytes of a damaged string are unknown, but its offsets must be valid.
        if "Invalid UTF8" not in str(error):
            raise
    return got


if __name__ == "__main__":
    given_format, given_files, place = pickle.load(sys.stdin.buffer)
    with Path(place).open("wb") as file:
        read_each(given_format, given_files, file)
