"""What the footers of Parquet files say of their columns, as far as Spark's own reader depends on it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from icefield import FileIO
from icefield.errors import IcefieldError

_REMEMBERED = 100_000
"""Files of which the shape is kept."""

_READERS = 8
_OLD_CALENDARS = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


@dataclass(frozen=True, eq=False)
class FileShape:
    """The columns of a file, with their field ids, and how each of their leaves is stored.

    Files of one shape share the object.
    """

    schema: pa.Schema
    physical: tuple[str, ...]
    parquet: Any
    is_rebased: bool
    """Whether Spark wrote dates or times of its older calendar, which it turns round when it reads them."""

    def equals(self, schema: pa.Schema, parquet: Any, is_rebased: bool) -> bool:
        """Whether a footer says the same."""
        same = self.is_rebased == is_rebased and self.parquet.equals(parquet)
        return bool(same and self.schema.equals(schema, check_metadata=True))


class Footers:
    """Reads the shapes of files, several at once, and keeps them: data files never change."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, int], FileShape | None] = OrderedDict()
        self._shapes: list[FileShape] = []
        self._lock = Lock()

    def shapes(self, io: FileIO, files: Iterable[tuple[str, int]]) -> Iterator[FileShape | None]:
        """The shape of each file, given by location and size, in their order; None for one that cannot be read."""
        wanted = list(files)
        unknown = [file for file in wanted if file not in self._known]
        if len(unknown) > 1:
            with ThreadPoolExecutor(_READERS) as threads:
                list(threads.map(lambda file: self._shape(io, file), unknown))
        return (self._shape(io, file) for file in wanted)

    def _shape(self, io: FileIO, file: tuple[str, int]) -> FileShape | None:
        with self._lock:
            if file in self._known:
                self._known.move_to_end(file)
                return self._known[file]
        try:
            with io.open_input(file[0]) as data:
                metadata = pq.read_metadata(data.arrow_file())
            schema = metadata.schema.to_arrow_schema().remove_metadata()
        except (IcefieldError, pa.ArrowException, OSError):
            return None  # whoever reads it says what is wrong with it
        is_rebased = any(key in (metadata.metadata or {}) for key in _OLD_CALENDARS)
        with self._lock:
            found = next((each for each in self._shapes if each.equals(schema, metadata.schema, is_rebased)), None)
            if found is None:
                physical = tuple(metadata.schema.column(at).physical_type for at in range(len(metadata.schema)))
                found = FileShape(schema, physical, metadata.schema, is_rebased)
                self._shapes.append(found)
            self._known[file] = found
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return found


FOOTERS = Footers()
"""Those of this process."""
