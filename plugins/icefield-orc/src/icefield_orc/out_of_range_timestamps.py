"""Timestamps outside the years 1677 to 2262, which Arrow's reader of ORC cannot hold: it reads nanoseconds alone.

The columns that have one, and no others, are read again through pyorc, stripe by stripe. That takes a Python object
for each value: right, and much slower than Arrow. Few tables hold such timestamps, so pyorc is an extra.

This can go when Arrow reads timestamps of ORC in the unit that is asked for; `liborc` itself holds seconds and
nanoseconds apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import pyarrow as pa
from icefield.abc import InputFile
from icefield.errors import MissingPlugin

from icefield_orc.schema import TIMESTAMPS, Node


def out_of_range(error: pa.ArrowInvalid) -> bool:
    """Whether Arrow failed for a timestamp that it cannot hold."""
    return "out of range for nanosecond" in str(error)


def has_timestamps(node: Node) -> bool:
    """Whether a column is a timestamp or holds one."""
    return any(below.kind in TIMESTAMPS for below in node.below())


def read_columns(source: InputFile, root: Node, stripe: int, positions: Sequence[int]) -> list[pa.Array]:
    """Read whole top-level columns of one stripe, by position.

    They have the form that Arrow's reader returns, with timestamps in the unit of the schema.

    Raises ``MissingPlugin`` where pyorc is not installed, ``ValueError`` for a damaged stripe.
    """
    try:
        columns = import_module("icefield_orc.pyorc_columns")
    except ModuleNotFoundError as error:
        if error.name != "pyorc":
            raise
        raise MissingPlugin(
            "a timestamp outside the years 1677 to 2262 is read through pyorc, which is not installed; "
            'pip install "icefield-orc[pyorc]"'
        ) from error
    found: list[pa.Array] = columns.read_columns(source, root, stripe, positions)
    return found
