"""The stream below pyarrow's writer, which Icefield alone publishes or aborts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icefield.abc import OutputStream


class ParquetSink:
    """The stream that pyarrow writes to; after ``abort`` it discards all writes."""

    def __init__(self, stream: OutputStream) -> None:
        self._stream = stream
        self._aborted = False
        self._held: list[bytes] | None = None

    def write(self, data: Any) -> int:
        if self._aborted:
            return len(data)
        if self._held is not None:
            self._held.append(bytes(data))
            return len(data)
        return self._stream.write(data)

    def tell(self) -> int:
        return 0 if self._aborted else self._stream.tell() + sum(map(len, self._held or ()))

    def hold(self) -> None:
        """Buffer further writes until ``release``."""
        self._held = []

    def release(self, change: Callable[[bytes], bytes]) -> None:
        """Write the buffered bytes, after ``change`` has edited them."""
        held, self._held = self._held, None
        self._stream.write(change(b"".join(held or ())))

    def publish(self) -> None:
        self._stream.close()

    def abort(self) -> None:
        self._aborted = True
        self._stream.abort()

    # pyarrow calls these methods of a file, and closes the file with its writer; but only ``publish`` may close the
    # stream.
    closed = False

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False
