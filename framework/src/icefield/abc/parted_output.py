"""A file of an object store, written in parts that the store puts together.

What fits into one part is one request. What is larger goes up while more is written; the store shows the file when
the last step, ``finish``, is done, and never before.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from icefield.abc.file_system import OutputStream


class PartedOutput(OutputStream):
    """A stream to a new file in parts; a store gives the four steps.

    A step that fails gives the upload up, so that nothing of it stays with the store, and its error is raised. A part
    goes up in another thread while the next one is filled.
    """

    def __init__(self, location: str, part_size: int) -> None:
        self.location = location
        self.part_size = part_size
        self._buffer = bytearray()
        self._written = 0
        self._parts = 0
        self._ended = False
        self._sender: ThreadPoolExecutor | None = None
        self._pending: Future[None] | None = None

    @abstractmethod
    def put_whole(self, data: bytes) -> None:
        """Publish a file that fits into one part."""

    @abstractmethod
    def put_part(self, number: int, data: bytes) -> None:
        """Send a part of exactly ``part_size`` bytes; ``number`` counts from 0. The first begins the upload."""

    @abstractmethod
    def finish(self, number: int, data: bytes) -> None:
        """Send the last part, of at least one byte and at most ``part_size``, and publish the file."""

    @abstractmethod
    def cancel(self) -> None:
        """Give up an upload that was begun: its parts do not stay with the store."""

    def write(self, data: Any, /) -> int:
        if self._ended:
            raise ValueError(f"the stream to {self.location} is closed")
        view = memoryview(data).cast("B")
        taken = 0
        while taken < len(view):
            # A full buffer is sent only when more comes, so that the last part is never empty.
            if len(self._buffer) == self.part_size:
                self._step(self._send)
            piece = view[taken : taken + self.part_size - len(self._buffer)]
            self._buffer += piece
            taken += len(piece)
        self._written += taken
        return taken

    def tell(self) -> int:
        return self._written

    def close(self) -> None:
        if self._ended:
            return
        self._step(self._publish)
        self._end()

    def abort(self) -> None:
        if self._ended:
            return
        with suppress(Exception):  # a part that fails now no longer matters
            self._wait()
        self._end()
        if self._parts:
            self.cancel()

    @property
    def closed(self) -> bool:
        return self._ended

    def _step(self, step: Callable[[], None]) -> None:
        try:
            step()
        except BaseException:
            with suppress(Exception):  # the first error is what the caller has to know
                self.abort()
            raise

    def _send(self) -> None:
        self._wait()
        if self._sender is None:
            self._sender = ThreadPoolExecutor(1, thread_name_prefix="icefield-upload")
        data, self._buffer = bytes(self._buffer), bytearray()
        number, self._parts = self._parts, self._parts + 1
        self._pending = self._sender.submit(self.put_part, number, data)

    def _publish(self) -> None:
        self._wait()
        if self._parts:
            self.finish(self._parts, bytes(self._buffer))
        else:
            self.put_whole(bytes(self._buffer))

    def _wait(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def _end(self) -> None:
        self._ended = True
        self._buffer = bytearray()
        if self._sender is not None:
            self._sender.shutdown(wait=False)
