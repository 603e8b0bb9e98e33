"""Checks of output streams: published whole by ``close``, and never otherwise."""

from __future__ import annotations

from array import array

import pyarrow as pa
import pytest
from icefield.abc import FileSystem, PutMode

from icefield_testing.file_systems.base import FileSystemChecks

_MIB = 1024 * 1024


class StreamChecks(FileSystemChecks):
    """Checks of ``open_output``."""

    def test_a_stream_publishes_on_close_and_not_before(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``open_output`` shows a file while it is still being written."""
        sink = file_system.open_output(f"{root}/new/deep/file")
        assert sink.write(b"first ") == 6
        assert self.raw_get(f"{root}/new/deep/file") is None
        sink.write(memoryview(b"second"))
        assert sink.tell() == 12
        assert not sink.closed
        sink.close()
        assert sink.closed
        assert self.raw_get(f"{root}/new/deep/file") == b"first second"
        sink.close()

    def test_two_streams_that_are_written_at_once_keep_apart(self, file_system: FileSystem, root: str) -> None:
        """If this fails, streams share a buffer: keep it in the object that ``open_output`` returns."""
        streams = [file_system.open_output(f"{root}/{name}") for name in ("a", "b")]
        for trial in range(8):
            for number, sink in enumerate(streams):
                sink.write(bytes([number]) * (100 + trial))
                assert sink.tell() == sum(range(100, 101 + trial))
        streams[0].close()
        streams[1].write(b"\x01")
        streams[1].close()
        assert self.raw_get(f"{root}/a") == bytes([0]) * 828
        assert self.raw_get(f"{root}/b") == bytes([1]) * 829

    def test_an_aborted_stream_leaves_nothing(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``abort`` publishes, as closing an fsspec file after an exception does."""
        sink = file_system.open_output(f"{root}/gone")
        sink.write(b"x" * 100_000)
        sink.abort()
        sink.abort()
        assert sink.closed
        with pytest.raises((ValueError, OSError), match="closed"):
            sink.write(b"more")
        del sink
        assert self.raw_get(f"{root}/gone") is None

    def test_an_exception_in_a_with_block_leaves_nothing(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``__exit__`` closes where it should abort."""
        sink = file_system.open_output(f"{root}/gone").__enter__()
        sink.write(b"x" * 6_000_000)
        sink.__exit__(KeyError, KeyError("the writer failed"), None)
        assert self.raw_get(f"{root}/gone") is None

    def test_a_large_stream_arrives_whole(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a multipart upload loses or reorders parts."""
        part = bytes(range(256)) * 4096
        with file_system.open_output(f"{root}/large") as sink:
            for number in range(12):
                sink.write(part)
                assert sink.tell() == (number + 1) * len(part)
        assert self.raw_get(f"{root}/large") == part * 12

    def test_a_stream_of_whole_parts_arrives_whole(self, file_system: FileSystem, root: str) -> None:
        """If this fails, the last part is lost when it is full: a stream that ends where a part does has no rest."""
        sizes = sorted({1 << 16, _MIB, self.part_size, 2 * self.part_size})
        pattern = bytes(range(251)) * (sizes[-1] // 251 + 1)
        for size in sizes:
            with file_system.open_output(f"{root}/{size}") as sink:
                for start in range(0, size, 3 * _MIB):
                    sink.write(memoryview(pattern)[start : min(start + 3 * _MIB, size)])
            found = self.raw_get(f"{root}/{size}")
            assert found is not None
            assert len(found) == size
            assert found == pattern[:size], f"{size} bytes, of which some changed"

    def test_pyarrow_writes_to_a_stream(self, file_system: FileSystem, root: str) -> None:
        """If this fails, the stream lacks something that pyarrow asks of a Python file."""
        table = pa.table({"a": [1, 2, 3]})
        with file_system.open_output(f"{root}/t.arrow") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        raw = self.raw_get(f"{root}/t.arrow")
        assert raw is not None
        assert pa.ipc.open_file(raw).read_all() == table

    def test_a_buffer_may_be_filled_again_after_a_write(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``write`` keeps a view of the caller's buffer, and the file has bytes of a later write: copy
        what is not sent yet."""
        for size in (4, 70_000, 3 * _MIB // 2):
            buffer = bytearray(size)
            with file_system.open_output(f"{root}/{size}") as sink:
                for letter in b"abcde":
                    buffer[:] = bytes([letter]) * size
                    assert sink.write(memoryview(buffer)) == size
                buffer[:] = b"x" * size
            found = self.raw_get(f"{root}/{size}")
            assert found is not None
            wanted = b"".join(bytes([letter]) * size for letter in b"abcde")
            wrong = sum(found[at : at + size] != wanted[at : at + size] for at in range(0, len(wanted), size))
            assert not wrong, f"{wrong} of 5 writes of {size:,} bytes have the bytes of a later one"
            assert len(found) == len(wanted), f"the file has {len(found):,} bytes, {len(wanted):,} were written"

    def test_a_buffer_of_wide_items_is_counted_in_bytes(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``write`` counts the items of a buffer and not its bytes: ``memoryview(data).nbytes``."""
        numbers = array("q", range(1_000))
        with file_system.open_output(f"{root}/wide") as sink:
            for data in (numbers, memoryview(numbers), pa.py_buffer(numbers)):
                taken, before = sink.write(data), sink.tell()
                assert taken == 8_000, f"write took {taken:,} of 8,000 bytes of a {type(data).__name__}"
                assert before % 8_000 == 0, f"tell is {before:,} after whole buffers of 8,000 bytes"
        found = self.raw_get(f"{root}/wide") or b""
        assert found == numbers.tobytes() * 3, f"{len(found):,} bytes arrived, not the 24,000 that were written"

    def test_a_stream_without_a_byte_makes_an_empty_file(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a stream that was never written publishes no file, or a write of no bytes ends the stream."""
        file_system.open_output(f"{root}/never").close()
        with file_system.open_output(f"{root}/nothing") as sink:
            sink.write(b"")
        with file_system.open_output(f"{root}/between") as sink:
            for data in (b"", b"a", b"", b"b", b""):
                assert sink.write(data) == len(data)
        found = [self.raw_get(f"{root}/{name}") for name in ("never", "nothing", "between")]
        assert found == [b"", b"", b"ab"], f"an unwritten stream, one of no bytes, and 'ab' made {found}"

    def test_overwriting_replaces_whole(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``put(OVERWRITE)`` appends, or leaves the tail of a longer file."""
        file_system.put(f"{root}/hint", b"a long text", PutMode.OVERWRITE)
        file_system.put(f"{root}/hint", b"7", PutMode.OVERWRITE)
        assert self.raw_get(f"{root}/hint") == b"7"
