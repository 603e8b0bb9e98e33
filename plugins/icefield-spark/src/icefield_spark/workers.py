"""What every task in a Python worker of Spark begins with."""

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
"""What Spark has on Python's path besides these: the jar of its own core."""


_SEEN = {"modules": 0}
"""How many modules this worker had when its objects were put aside."""


def begin_task() -> None:
    """Spare the tasks that follow in this worker what it would do again after each of them."""
    _spare_archives()
    if TaskContext.get() is not None:  # the garbage of a driver is the user's
        _spare_collections()


def _spare_collections() -> None:
    """Have Python look for garbage no longer among the objects of modules.

    Between two tasks a worker has it look among all of its objects. They are put aside only when modules were loaded
    since the last time, so that what tasks leave behind is looked at.
    """
    if len(sys.modules) > _SEEN["modules"]:
        _SEEN["modules"] = len(sys.modules)
        gc.freeze()


def _spare_archives() -> None:
    """Have Python read the directories of Spark's archives once.

    Before each task a worker has Python forget what it knows of folders, and up to Python 3.12 an importer of modules
    in an archive answers that by reading the archive's directory at once: once for each package. Importers that are not
    in the cache are made when a module is imported, of a directory that Python keeps.
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
    """The chunks that are a task's, by the numbers that it gets.

    ``chunks``: a broadcast variable, or the chunks themselves. ``step``: by how much the numbers of two chunks differ.
    """
    begin_task()
    every = getattr(chunks, "value", chunks)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield every[number // step]
