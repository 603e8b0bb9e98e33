"""Checks of an open file: its size, reads by offset, reads of several ranges, and the effect of ``close``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from icefield.abc import FileSystem, FileSystemAbility, InputFile
from icefield.toolkit import as_input_file

from icefield_testing.file_systems.base import FileSystemChecks
from icefield_testing.same_bytes import check_bytes

_DATA = bytes(range(251)) * 4_000
"""A million bytes: more than is read ahead of a small file."""

_RANGES = ((900_000, 50), (0, 10), (5, 10), (300_000, 70_000), (500_000, 0), (len(_DATA) - 3, 3))


class InputFileChecks(FileSystemChecks):
    """Checks of the files that ``open_input`` returns, wrapped as the kernel wraps them."""

    def opened(self, file_system: FileSystem, location: str) -> InputFile:
        """An open file; a file that is no ``InputFile`` is wrapped, as ``FileIO`` does it."""
        is_remote = FileSystemAbility.REMOTE in file_system.abilities
        return as_input_file(file_system.open_input(location), is_remote=is_remote)

    def test_the_size_is_known_before_anything_is_read(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``size`` is of what was read so far, or asking for it moves the position."""
        for name, data in {"empty": b"", "small": b"0123456789", "large": _DATA}.items():
            self.raw_put(f"{root}/{name}", data)
            with self.opened(file_system, f"{root}/{name}") as source:
                assert source.size == len(data)
                assert source.tell() == 0
                check_bytes(source.read(), data, f"the {name} file")
                assert source.size == len(data)

    def test_a_read_by_offset_is_short_only_at_the_end(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``read_at`` gives fewer bytes than there are, more than were asked for, or takes an offset
        behind the end for an error."""
        self.raw_put(f"{root}/a.bin", _DATA)
        with self.opened(file_system, f"{root}/a.bin") as source:
            end = source.size
            for offset, length in ((0, 1), (7, 300_000), (0, end), (end - 5, 5), (600_000, 0)):
                found = source.read_at(offset, length)
                check_bytes(found, _DATA[offset : offset + length], f"read_at({offset:,}, {length:,})")
            assert source.read_at(end - 5, 100) == _DATA[-5:]
            assert [source.read_at(offset, 9) for offset in (end, end + 1, 2 * end)] == [b"", b"", b""]
            for offset, length in ((-1, 5), (0, -1)):
                with pytest.raises(ValueError, match=r"."):
                    source.read_at(offset, length)

    def test_a_read_of_several_mebibytes_is_not_cut(self, file_system: FileSystem, root: str) -> None:
        """If this fails, one answer of the store, or one read of the system, is taken for the whole: read on until all
        bytes are there."""
        data = bytes(range(253)) * 21_000
        self.raw_put(f"{root}/large", data)
        end = len(data)
        reads: dict[str, Callable[[InputFile], bytes]] = {
            "read()": lambda source: source.read(),
            f"read({end:,})": lambda source: source.read(end),
            f"read_at(0, {end:,})": lambda source: source.read_at(0, end),
            "read_ranges": lambda source: b"".join(source.read_ranges([(0, end - 9), (end - 9, 9)])),
            "readinto": lambda source: _filled(source, end),
            "arrow_file().read()": lambda source: source.arrow_file().read(),
        }
        for name, read in reads.items():
            with self.opened(file_system, f"{root}/large") as source:
                check_bytes(read(source), data, f"the result of {name}")

    def test_reads_by_offset_leave_the_position_alone(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``read_at`` or ``read_ranges`` seeks, and a reader that reads on goes astray."""
        self.raw_put(f"{root}/a.bin", _DATA)
        with self.opened(file_system, f"{root}/a.bin") as source:
            assert source.read(10) == _DATA[:10]
            assert source.read_at(800_000, 10) == _DATA[800_000:800_010]
            assert source.tell() == 10
            source.read_ranges(_RANGES)
            assert source.read(10) == _DATA[10:20]

    def test_ranges_come_in_the_order_asked_for(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``read_ranges`` sorts its answers, or cuts ranges wrongly that overlap or are empty."""
        self.raw_put(f"{root}/a.bin", _DATA)
        with self.opened(file_system, f"{root}/a.bin") as source:
            beyond = [(len(_DATA) - 4, 100), (len(_DATA) + 9, 5)]
            ranges = [*_RANGES, *beyond]
            for (offset, length), found in zip(ranges, source.read_ranges(ranges), strict=True):
                check_bytes(found, _DATA[offset : offset + length], f"the range of {length:,} bytes from {offset:,} on")
            assert source.read_ranges([]) == []

    def test_several_threads_read_one_file(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``read_at`` moves a position that all threads share: read by offset, or hold a lock."""
        self.raw_put(f"{root}/a.bin", _DATA)
        reads = [(number * 7_919 % len(_DATA), 200_000 if number % 4 == 0 else 1_000) for number in range(400)]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            with self.opened(file_system, f"{root}/a.bin") as source, ThreadPoolExecutor(8) as pool:
                found = [*pool.map(lambda read: source.read_at(*read), reads)]
        finally:
            sys.setswitchinterval(interval)
        wrong = sum(data != _DATA[at : at + length] for data, (at, length) in zip(found, reads, strict=True))
        assert not wrong, f"{wrong} of {len(reads)} reads by 8 threads gave other bytes"

    def test_a_closed_file_is_not_read(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a closed file still gives bytes, or closing it twice is an error: raise ``ValueError`` from
        reads alone."""
        self.raw_put(f"{root}/a.bin", b"0123456789")
        source = self.opened(file_system, f"{root}/a.bin")
        assert not source.closed
        source.close()
        source.close()
        assert source.closed
        for read in (source.read, lambda: source.read_at(0, 1), lambda: source.read_ranges([(0, 1)]), source.tell):
            with pytest.raises(ValueError, match=r"."):
                read()

    def test_a_file_of_a_remote_store_says_so(self, file_system: FileSystem, root: str) -> None:
        """If this fails, formats ask a store that declares ``REMOTE`` for each page by itself: let ``is_remote`` be
        True."""
        self.raw_put(f"{root}/a.bin", b"0123456789")
        with self.opened(file_system, f"{root}/a.bin") as source:
            assert source.is_remote or FileSystemAbility.REMOTE not in file_system.abilities


def _filled(source: InputFile, size: int) -> bytes:
    buffer = bytearray(size)
    return bytes(buffer[: source.readinto(buffer)])
