"""Processes that begin with what is long to import, so that a test that starts many does not import it in each.

A server forks them. It has no threads and none of a test's state, as a process has that is started anew.
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
    """A context whose processes begin with the usual modules, and with more, if it is the first that starts one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_PRELOADED, *more])
    return context


__all__ = ["ended", "forking"]
