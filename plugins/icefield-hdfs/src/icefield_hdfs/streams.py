"""Files open for reading and writing."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any, Final

from icefield.abc import OutputStream
from icefield.toolkit import FetchedRange, RangedInput

from icefield_hdfs.client import Reader, Writer

_CHUNK: Final = 1024 * 1024  # bytes to send at a time
_TAIL: Final = 512 * 1024  # the whole of most metadata files and manifests, the footer of most data files

Translated = Callable[[str], AbstractContextManager[None]]


class HdfsInput(RangedInput):
    """A file open for reading; small reads in a row are read ahead."""

    most_ahead = 1024 * 1024

    def __init__(self, location: str, open_reader: Callable[[], Reader], translated: Translated) -> None:
        super().__init__(location)
        self._open_reader, self._translated = open_reader, translated
        self._reader: Reader | None = None

    def fetch_first(self) -> FetchedRange:
        with self._translated(self.location):
            self._reader = self._open_reader()
        size = self._reader.size
        return self.fetch(max(0, size - _TAIL), size)

    def fetch(self, start: int, end: int) -> FetchedRange:
        if self._reader is None:
            self.open()
        assert self._reader is not None
        end = min(end, self._reader.size)
        with self._translated(self.location):
            data = self._reader.read_range(start, end) if start < end else b""
        return FetchedRange(start, data, self._reader.size)


class HdfsOutput(OutputStream):
    """Writes under a temporary name, since HDFS shows a file that is still open; ``close`` renames."""

    def __init__(
        self,
        location: str,
        writer: Writer,
        publish: Callable[[int], None],
        discard: Callable[[], None],
        translated: Translated,
    ) -> None:
        self._location, self._writer, self._translated = location, writer, translated
        self._publish, self._discard = publish, discard
        self._written = 0
        self._unsent = bytearray()
        self._ended = False
        self._process = os.getpid()

    def write(self, data: Any, /) -> int:
        if self._ended:
            raise ValueError(f"the stream to {self._location} is closed")
        view = memoryview(data).cast("B")
        try:
            if len(view) >= _CHUNK:
                self._send_unsent()
                self._send(data if isinstance(data, bytes) else bytes(view))
            else:
                self._unsent += view
                if len(self._unsent) >= _CHUNK:
                    self._send_unsent()
        except BaseException:
            self._abort_quietly()
            raise
        self._written += len(view)
        return len(view)

    def _send_unsent(self) -> None:
        unsent, self._unsent = self._unsent, bytearray()
        if unsent:
            self._send(unsent)

    def _send(self, data: bytes | bytearray) -> None:
        with self._translated(self._location):
            self._writer.write(data)

    def tell(self) -> int:
        return self._written

    def close(self) -> None:
        if self._ended:
            return
        try:
            self._send_unsent()
            with self._translated(self._location):
                self._writer.close()
            self._publish(self._written)
        except BaseException:
            self._abort_quietly()
            raise
        self._ended = True

    def abort(self) -> None:
        if not self._ended:
            self._ended = True
            self._writer.give_up()
            self._discard()

    def __del__(self) -> None:
        # A stream that was never closed publishes nothing; a forked child does not touch its parent's streams.
        if not getattr(self, "_ended", True) and self._process == os.getpid():
            self._abort_quietly()

    def _abort_quietly(self) -> None:
        with suppress(Exception):  # the caller needs the first error, not an error of the clean-up
            self.abort()

    @property
    def closed(self) -> bool:
        return self._ended
