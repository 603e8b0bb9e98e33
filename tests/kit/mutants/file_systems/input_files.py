"""File systems with defects in their open files, one defect each."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyarrow as pa
from icefield.abc import FileSystemAbility, InputFile
from icefield.builtin.memory import MemoryFileSystem
from icefield.toolkit import BytesInput

from mutants import Mutant, of


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


class ShortReads(_Opens):
    """Gives at most one mebibyte, as one read of a socket does."""

    class kind(BytesInput):
        def read_at(self, offset: int, length: int) -> bytes:
            return super().read_at(offset, min(length, 1 << 20))


class ShortWholeReads(_Opens):
    """Gives the first four mebibytes of a file that is read whole."""

    class kind(BytesInput):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(4 << 20 if size is None or size < 0 else size)


class ShortRanges(_Opens):
    """Cuts each of several ranges to one answer of the store."""

    class kind(BytesInput):
        def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
            return [data[: 5 << 20] for data in super().read_ranges(ranges)]


class ShortArrowFile(_Opens):
    """Gives Arrow what was read ahead."""

    class kind(BytesInput):
        def arrow_file(self) -> pa.NativeFile:
            return pa.BufferReader(self.read_at(0, 2 << 20))


class FillsHalfABuffer(_Opens):
    """Fills the first mebibyte of a buffer."""

    class kind(BytesInput):
        def readinto(self, buffer: bytearray | memoryview, /) -> int:
            return super().readinto(memoryview(buffer)[: 1 << 20])


MUTANTS: list[Mutant] = of(
    {
        CountsWhatWasRead: ("test_the_size_is_known_before_anything_is_read", "of what was read so far"),
        FailsBehindTheEnd: ("test_a_read_by_offset_is_short_only_at_the_end", "behind the end for an error"),
        SeeksToRead: ("test_reads_by_offset_leave_the_position_alone", "goes astray"),
        SortsRanges: ("test_ranges_come_in_the_order_asked_for", "sorts its answers"),
        SharesOneOffset: ("test_several_threads_read_one_file", "a position that all threads share"),
        ReadsWhatIsClosed: ("test_a_closed_file_is_not_read", "still gives bytes"),
        SaysItIsNear: ("test_a_file_of_a_remote_store_says_so", "for each page by itself"),
        ShortReads: ("test_a_read_of_several_mebibytes_is_not_cut", "has 1,048,576 bytes, not 5,313,000"),
        ShortWholeReads: ("test_a_read_of_several_mebibytes_is_not_cut", "read() has 4,194,304 bytes, not 5,313,000"),
        ShortRanges: ("test_a_read_of_several_mebibytes_is_not_cut", "read_ranges has 5,242,889 bytes, not"),
        ShortArrowFile: ("test_a_read_of_several_mebibytes_is_not_cut", "arrow_file().read() has 2,097,152"),
        FillsHalfABuffer: ("test_a_read_of_several_mebibytes_is_not_cut", "readinto has 1,048,576"),
    }
)
