"""Checks of a forked process, which inherits the locks, connections and counters of this one."""

from __future__ import annotations

from typing import Final

from icefield.abc import FileSystem, FileSystemAbility, OutputStream, PutMode

from icefield_testing.file_systems.base import FileSystemChecks
from icefield_testing.processes import AnotherProcess, ended
from icefield_testing.same_bytes import check_bytes

_MOST_SECONDS: Final = 30.0
_MINE: Final = b"mine " * 20_000
_OTHERS: Final = b"other " * 20_000


class ForkChecks(FileSystemChecks):
    """Checks of processes that are forked when the file system was used already."""

    def test_a_forked_process_and_its_parent_write_and_read(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a lock, a connection or a counter of before the fork is used after it: a call hangs, or two
        processes write one temporary file. Give each process its own (``reset_after_fork``), and names by chance."""
        self.needs_working_forks()
        seconds = min(_MOST_SECONDS, self.check_seconds / 2)

        def serve(number: int) -> dict[str, bytes]:
            with file_system.open_output(f"{root}/{number}/others") as sink:
                sink.write(_OTHERS)
            file_system.put(f"{root}/{number}/put", _OTHERS, PutMode.OVERWRITE)
            if FileSystemAbility.LIST in file_system.abilities:
                assert [*file_system.list_files(f"{root}/{number}")]
            return {name: file_system.open_input(f"{root}/{number}/{name}").read() for name in ("others", "put")}

        file_system.put(f"{root}/before", b"x", PutMode.OVERWRITE)
        assert file_system.open_input(f"{root}/before").read() == b"x"
        with AnotherProcess(serve) as other:
            for number in range(2):
                sink = file_system.open_output(f"{root}/{number}/mine")
                sink.write(_MINE[:1000])
                other.ask(number)
                found = other.answer(seconds)
                sink.write(_MINE[1000:])
                sink.close()
                for name, data in found.items():
                    check_bytes(data, _OTHERS, f"what the forked process reads of {name}")
                for name, data, whose in (("others", _OTHERS, "forked process"), ("mine", _MINE, "parent")):
                    check_bytes(self.raw_get(f"{root}/{number}/{name}"), data, f"the file of the {whose}")

    def test_a_forked_process_that_forgets_a_stream_of_its_parent_deletes_nothing(
        self, file_system: FileSystem, root: str
    ) -> None:
        """If this fails, a stream that is garbage in a forked process deletes what its parent still writes: compare
        the process that opened the stream with this one (``os.getpid``) before anything is deleted in ``__del__``."""
        self.needs_working_forks()
        streams: list[OutputStream] = [file_system.open_output(f"{root}/forgotten")]
        streams[0].write(_MINE[:1000])

        ended(streams.clear, min(_MOST_SECONDS, self.check_seconds / 2))
        try:
            streams[0].write(_MINE[1000:])
            streams[0].close()
            found = self.raw_get(f"{root}/forgotten")
        except OSError as error:
            raise AssertionError(f"a forked process forgot it, and the parent's file is gone: {error}") from error
        assert found == _MINE, "a forked process forgot it, and the parent's file is another one"
