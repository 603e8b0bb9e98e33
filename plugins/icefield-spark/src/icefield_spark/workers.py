"""The start of every task in a Python worker of Spark."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext

_LAZY_SINCE: Final = (3, 13)
_IN_ARCHIVES: Final = ("pyspark", "py4j")
_JAR: Final = "spark-core_*.jar"
"""A further archive on Python's path: the jar of Spark's core."""


_SEEN = {"modules": 0}
"""How many modules this worker had when its objects were put aside."""


def begin_task() -> None:
    """Prevent work that this worker would repeat between tasks: reading archives and collecting garbage."""
    _spare_archives()
    if TaskContext.get() is not None:  # the garbage of a driver is the user's
        _spare_collections()


def _spare_collections() -> None:
    """Exclude the objects of modules from Python's garbage collection.

    Between two tasks a worker runs a full collection over all of its objects. The objects are frozen only when modules
    were loaded since the last freeze, so that garbage of tasks is still collected.
    """
    if len(sys.modules) > _SEEN["modules"]:
        _SEEN["modules"] = len(sys.modules)
        gc.freeze()


def _spare_archives() -> None:
    """Have Python read the directories of Spark's archives once.

    Before each task a worker invalidates the caches of Python's importers. Up to Python 3.12, each importer of an
    archive then reads the archive's directory again, once for each package. An importer that was removed from the cache
    is created again when a module is imported, from a directory that Python keeps.
    """
    if sys.version_info >= _LAZY_SINCE:
        return
    archives = {getattr(getattr(sys.modules.get(name), "__loader__", None), "archive", None) for name in _IN_ARCHIVES}
    archives.discard(None)
    for path, importer in list(sys.path_importer_cache.items()):
        archive = getattr(importer, "archive", None)
        if archive is not None and (archive in archives or PurePath(archive).match(_JAR)):
            sys.path_importer_cache.pop(path, None)


def chunks_of(numbers: Iterator[pa.RecordBatch], chunks: Any, step: int = 1) -> Iterator[bytes]:
    """The chunks of a task, by the numbers that the task receives.

    ``chunks``: a broadcast variable, or the chunks themselves. ``step`` is the difference between the numbers of two
    successive chunks.
    """
    begin_task()
    every = getattr(chunks, "value", chunks)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield every[number // step]
