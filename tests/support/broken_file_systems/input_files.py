"""File systems with defects in their open files, one defect each."""

from __future__ import annotations

import time
from collections.abc import Sequence

from icefield.abc import FileSystemAbility, InputFile
from icefield.builtin.memory import MemoryFileSystem
from icefield.toolkit import BytesInput


class _Opens(MemoryFileSystem):
    """Opens files as objects of the class ``kind``."""

    kind: type[BytesInput] = BytesInput

    def open_input(self, location: str) -> InputFile:
        return self.kind(super().open_input(location).read())


class CountsWhatWasRead(_Opens):
    """Returns the number of bytes read so far as the size."""

    class kind(BytesInput):
        so_far = 0

        @property
        def size(self) -> int:
            return self.so_far

        def read_at(self, offset: int, length: int) -> bytes:
            data = super().read_at(offset, length)
            self.so_far = max(self.so_far, offset + len(data))
            return data


class FailsBehindTheEnd(_Opens):
    """Treats an offset behind the end of the file as an error."""

    class kind(BytesInput):
        def read_at(self, offset: int, length: int) -> bytes:
            if offset > self.size:
                raise EOFError(f"{offset} is behind the end")
            return super().read_at(offset, length)


class SeeksToRead(_Opens):
    """Reads at an offset by moving the position of the file there."""

    class kind(BytesInput):
        def read_at(self, offset: int, length: int) -> bytes:
            data = super().read_at(offset, length)
            self.seek(offset)
            return data


class SortsRanges(_Opens):
    """Gives ranges in the order of the file."""

    class kind(BytesInput):
        def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
            return super().read_ranges(sorted(ranges))


class SharesOneOffset(_Opens):
    """Keeps the offset of a read in an attribute that all threads share."""

    class kind(BytesInput):
        offset = 0

        def read_at(self, offset: int, length: int) -> bytes:
            self.offset = offset
            time.sleep(0.0001)
            return super().read_at(self.offset, length)


class ReadsWhatIsClosed(_Opens):
    """Gives bytes of a file that was closed."""

    class kind(BytesInput):
        is_closed = False

        def close(self) -> None:
            self.is_closed = True

        @property
        def closed(self) -> bool:
            return self.is_closed


class SaysItIsNear(_Opens):
    """Declares ``REMOTE``, and opens files that do not count as remote."""

    abilities = MemoryFileSystem.abilities | {FileSystemAbility.REMOTE}
