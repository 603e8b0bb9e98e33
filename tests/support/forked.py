"""Processes that begin with the slow imports done, so that a test with many processes does not repeat them in each.

A fork server starts them. It has no threads and none of a test's state, like a newly spawned process.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext

from icefield_testing.processes import ended

# pyarrow imports pandas with the first list that becomes an array.
_PRELOADED = (
    "pandas",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "icefield.catalog",
    "icefield.transaction",
    "icefield_avro.avro_format",
    "icefield_parquet.parquet_format",
)


def forking(*more: str) -> ForkServerContext:
    """A context for processes that begin with the usual modules, and with ``more`` if no process has started yet."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_PRELOADED, *more])
    return context


__all__ = ["ended", "forking"]
