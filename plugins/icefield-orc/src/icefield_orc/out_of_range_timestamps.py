"""Timestamps outside the years 1677 to 2262, which Arrow's ORC reader cannot hold: it reads only nanoseconds.

Only the columns that have one are read again through pyorc, stripe by stripe. This is correct but much slower than
Arrow, since pyorc makes a Python object for each value. Few tables hold such timestamps, so pyorc is an extra.

This module can go when Arrow can read ORC timestamps in a requested unit; `liborc` itself keeps seconds and nanoseconds
in separate numbers.
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
