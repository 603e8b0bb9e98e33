"""The columns in the footers of Parquet files, as far as Spark's own reader depends on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from icefield import FileIO
from icefield.abc import TypedReader
from icefield.errors import IcefieldError
from icefield.toolkit import LruCache, map_ahead

_REMEMBERED = 100_000
"""The number of files with a remembered shape."""

_READERS = 8
_OLD_CALENDARS = ("org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96")
_UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class FileShape:
    """The columns of a file, with their field ids, and how each of their leaves is stored.

    Files with the same shape share the object.
    """

    schema: pa.Schema
    physical: tuple[str, ...]
    is_rebased: bool
    """Whether Spark wrote dates or times of its older calendar, which it turns round when it reads them."""


@dataclass(frozen=True, slots=True)
class Footer:
    """The content of a footer: the file's shape, and its number of rows."""

    shape: FileShape
    rows: int


class Footers:
    """Reads footers by the format's own reader with its guards, several at once, and caches them.

    Data files never change, so that the cache stays valid.
    """

    def __init__(self) -> None:
        self._known: LruCache[tuple[str, int], Footer] = LruCache(_REMEMBERED)
        self._shapes: dict[tuple[bytes, tuple[str, ...], bool], FileShape] = {}

    def read(self, io: FileIO, files: Iterable[tuple[str, int]]) -> Iterator[Footer | None]:
        """The footer of each file, given by location and size, in their order; None for an unreadable file."""
        wanted = list(files)
        unknown = [file for file in wanted if file not in self._known]
        if len(unknown) > 1:
            list(map_ahead(unknown, lambda file: self._footer(io, file), _READERS))
        return (self._footer(io, file) for file in wanted)

    def forget(self) -> None:
        """Drop all cached footers."""
        self._known.clear()
        self._shapes.clear()

    def _footer(self, io: FileIO, file: tuple[str, int]) -> Footer | None:
        known = self._known.get(file)
        if known is not None:
            return known
        location, size = file
        try:
            with io.file_format("parquet").open_reader(io.open_input(location), location, size=size) as reader:
                stored = tuple(reader.stored_types) if isinstance(reader, TypedReader) else ()
                schema, physical, rows = reader.schema, stored, reader.record_count
                is_rebased = not reader.metadata.keys().isdisjoint(_OLD_CALENDARS)
        except (IcefieldError, pa.ArrowException, OSError):
            return None  # the reader of the file raises the error
        key = (schema.serialize().to_pybytes(), physical, is_rebased)
        shape = self._shapes.setdefault(key, FileShape(schema, physical, is_rebased))
        found = Footer(shape, _UNKNOWN if rows is None else rows)
        self._known.put(file, found)
        return found


FOOTERS = Footers()
"""The footers of this process."""
