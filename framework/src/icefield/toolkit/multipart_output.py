"""A file of an object store, written in parts that the store puts together.

A file that fits into one part takes one request. The parts of a larger file are uploaded while more is written; the
store shows the file when the last step, ``finish``, is done, and never before.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from icefield.abc.file_system import OutputStream


class PartedOutput(OutputStream):
    """A stream to a new file in parts; a subclass implements the four steps for its store.

    A failed step cancels the upload, so that none of its parts stays in the store, and raises its error. A part is
    uploaded in another thread while the next one is filled.
    """

    def __init__(self, location: str, part_size: int) -> None:
        self.location = location
        self.part_size = part_size
        self.__buffer = bytearray()
        self.__written = 0
        self.__parts = 0
        self.__ended = False
        self.__sender: ThreadPoolExecutor | None = None
        self.__pending: Future[None] | None = None

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
        """Cancel an upload that has begun: its parts do not stay in the store."""

    def write(self, data: Any, /) -> int:
        if self.__ended:
            raise ValueError(f"the stream to {self.location} is closed")
        view = memoryview(data).cast("B")
        taken = 0
        while taken < len(view):
            # A full buffer is sent only when more comes, so that the last part is never empty.
            if len(self.__buffer) == self.part_size:
                self.__step(self.__send)
            piece = view[taken : taken + self.part_size - len(self.__buffer)]
            self.__buffer += piece
            taken += len(piece)
        self.__written += taken
        return taken

    def tell(self) -> int:
        return self.__written

    def close(self) -> None:
        if self.__ended:
            return
        self.__step(self.__publish)
        self.__end()

    def abort(self) -> None:
        if self.__ended:
            return
        with suppress(Exception):  # a part that fails now no longer matters
            self.__wait()
        self.__end()
        if self.__parts:
            self.cancel()

    @property
    def closed(self) -> bool:
        return self.__ended

    def __step(self, step: Callable[[], None]) -> None:
        try:
            step()
        except BaseException:
            with suppress(Exception):  # the caller must see the first error
                self.abort()
            raise

    def __send(self) -> None:
        self.__wait()
        if self.__sender is None:
            self.__sender = ThreadPoolExecutor(1, thread_name_prefix="icefield-upload")
        data, self.__buffer = bytes(self.__buffer), bytearray()
        number, self.__parts = self.__parts, self.__parts + 1
        self.__pending = self.__sender.submit(self.put_part, number, data)

    def __publish(self) -> None:
        self.__wait()
        if self.__parts:
            self.finish(self.__parts, bytes(self.__buffer))
        else:
            self.put_whole(bytes(self.__buffer))

    def __wait(self) -> None:
        pending, self.__pending = self.__pending, None
        if pending is not None:
            pending.result()

    def __end(self) -> None:
        self.__ended = True
        self.__buffer = bytearray()
        if self.__sender is not None:
            self.__sender.shutdown(wait=False)
