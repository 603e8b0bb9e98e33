"""Checks of traces: unfinished files, forgotten streams, open descriptors, and credentials in logs and in ``repr``."""

from __future__ import annotations

import gc
import os
import time
import warnings
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from icefield.abc import FileSystem, FileSystemAbility, PutMode
from icefield.errors import FileExists, FileMissing, IcefieldError, StorageError

from icefield_testing.fault_model import KINDS, walk
from icefield_testing.file_systems.outages import OutageChecks
from icefield_testing.planted_secrets import PlantedSecret
from icefield_testing.service_faults import LossyProxy

_DESCRIPTORS: Final = Path("/dev/fd")
_ROUNDS: Final = 30
_KEPT: Final = 10
"""How many connections a file system may keep open."""
_CANCEL_SECONDS: Final = 5.0


class LeftoverChecks(OutageChecks):
    """Checks of what calls leave behind."""

    def test_an_unfinished_file_is_not_listed(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``list_files`` or ``stat`` shows the name of a stream that is still written or was aborted,
        such as a pending upload: show published files alone."""
        location = f"{root}/d/unfinished"
        sink = file_system.open_output(location)
        sink.write(b"x" * 1_000_000)
        self._check_unseen(file_system, location, "written")
        sink.abort()
        self._check_unseen(file_system, location, "aborted")

    def test_a_stream_leaves_a_file_that_was_there_alone(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``open_output`` appends to a file of that name or empties it, or ``abort`` deletes it: until
        ``close`` a stream changes nothing under the name."""
        location = f"{root}/there"
        self.raw_put(location, b"as it was")
        with suppress(FileExists):
            sink = file_system.open_output(location)
            sink.write(b"new")
            assert self.raw_get(location) == b"as it was", "an open stream changed the file of before"
            sink.abort()
            assert self.raw_get(location) == b"as it was", "``abort`` deleted or changed the file of before"
            closing = file_system.open_output(location)
            closing.write(b"new")
            closing.close()
        found = self.raw_get(location)
        assert found in (b"as it was", b"new"), f"neither the file of before nor the new one, but {found!r}"

    def test_writes_that_come_to_nothing_leave_no_other_file(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``abort`` or a refused call leaves its temporary file, and such files gather in each folder:
        delete it in a ``finally`` block."""
        self.needs(file_system, FileSystemAbility.LIST)
        self._write_in_vain(file_system, f"{root}/d")
        self._check_left(f"{root}/d", [info.location for info in file_system.list_files(f"{root}/d")])

    def test_no_leftover_is_hidden_from_the_listing(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``abort`` or a refused call leaves its temporary file, and ``list_files`` leaves such names
        out, so that no maintenance ever finds them: delete it in a ``finally`` block."""
        self._write_in_vain(file_system, f"{root}/d")
        left = self.raw_list(f"{root}/d")
        if left is None:
            pytest.skip("the store is not listed without the file system (`raw_list`)")
        self._check_left(f"{root}/d", left)

    def test_no_write_stays_open_at_the_store(
        self, file_system: FileSystem, root: str, service: LossyProxy | None
    ) -> None:
        """If this fails, a write that was aborted or failed stays open at the store, as a pending upload or a lease,
        which costs space or keeps others out: cancel it in ``abort``, and when a step fails, even if the reply to its
        first request was lost."""
        if self.raw_unfinished(root) is None:
            pytest.skip("the store does not say which writes are open (`raw_unfinished`)")
        data = b"x" * (self.part_size + 1)  # one part is sent before the end
        for ending in ("aborted", "interrupted"):
            sink = file_system.open_output(f"{root}/{ending}")
            sink.write(data)
            if ending == "aborted":
                sink.abort()
            else:
                sink.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
            self._check_none_open(root, f"after a stream that was {ending}")
        if service is not None:
            through = self._reached(self.file_system_through(service, file_system), root)
            for step in walk(service, KINDS["lost reply"], "a lost reply at"):
                failing = through.open_output(f"{root}/failed-{step.number}")
                with step, suppress(StorageError):
                    failing.write(data)
                    failing.close()
                with suppress(StorageError):
                    failing.abort()
                self._check_none_open(root, f"after {step}")

    def test_a_second_close_touches_nothing_of_others(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a second ``close`` or ``abort`` closes a descriptor whose number is another file's by then, or
        publishes again over the file that another writer made meanwhile: let it do nothing."""
        self.raw_put(f"{root}/f", b"x" * 1_000)
        source = file_system.open_input(f"{root}/f")
        source.read(10)
        closed, aborted = (file_system.open_output(f"{root}/{name}") for name in ("closed", "aborted"))
        for sink in (closed, aborted):
            sink.write(b"ours")
        source.close()
        closed.close()
        aborted.abort()
        self.raw_put(f"{root}/closed", b"another's")
        others = [os.open(os.devnull, os.O_RDONLY) for _ in range(_KEPT)]
        try:
            for end in (source.close, closed.close, closed.abort, aborted.abort, aborted.close):
                with suppress(Exception):
                    end()
            gone = [number for number in others if not _is_open(number)]
        finally:
            for number in others:
                with suppress(OSError):
                    os.close(number)
        assert not gone, f"a second close has closed {len(gone)} descriptors of others"
        assert self.raw_get(f"{root}/closed") == b"another's", "a second close or abort changed another's file"
        assert self.raw_get(f"{root}/aborted") is None, "``close`` after ``abort`` published the file"

    def test_a_forgotten_stream_publishes_nothing(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a stream that nobody closed publishes its bytes when it is garbage, as files of fsspec do:
        half a file appears when a writer fails. Abort in ``__del__``."""
        sink = file_system.open_output(f"{root}/forgotten")
        sink.write(b"half a file")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            del sink
            gc.collect()
        assert self.raw_get(f"{root}/forgotten") is None, "a forgotten stream published half a file"

    def test_closed_files_keep_no_descriptor(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``close`` or ``abort`` leaves a file or a connection open, and a long job runs out of
        descriptors: release it there."""
        if not _DESCRIPTORS.exists():
            pytest.skip("this system does not show the descriptors of a process")
        self.raw_put(f"{root}/f", b"x" * 1_000)

        def use(number: int) -> None:
            source = file_system.open_input(f"{root}/f")
            source.read(10)
            source.close()
            file_system.put(f"{root}/put", b"x", PutMode.OVERWRITE)
            aborted, closed = (file_system.open_output(f"{root}/{name}-{number}") for name in ("a", "c"))
            for sink in (aborted, closed):
                sink.write(b"x")
            aborted.abort()
            closed.close()

        use(0)
        before = len(os.listdir(_DESCRIPTORS))
        for number in range(1, _ROUNDS + 1):
            use(number)
        more = len(os.listdir(_DESCRIPTORS)) - before
        assert more <= _KEPT, f"{more} descriptors are left open by {_ROUNDS} files of each kind"

    def test_open_files_show_no_property(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``repr`` of an open file, a stream or a ``FileInfo`` shows a credential, and a traceback with
        values would end up in logs: show the location alone."""
        secret = PlantedSecret()
        system = self._reached(file_system, root, **{"test.secret": secret.value})
        secret.search_also(system.properties)
        source, sink = system.open_input(f"{root}/there"), system.open_output(f"{root}/shown")
        for made in (source, sink, system.stat(f"{root}/there"), system.credentials(f"{root}/there")):
            secret.check_texts(f"a {type(made).__name__}", [f"{made!r} {made}"])
        source.close()
        sink.abort()

    def test_no_credential_is_in_a_log(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a log record or a warning shows a property: log the location, and the kind of the error."""
        secret = PlantedSecret()
        secret.search_also(self.alone(file_system).properties)
        with secret.watching_logs("a file system"):
            system = self._reached(file_system, root, **{"test.secret": secret.value})
        with secret.watching_logs("a store that fails"):
            self._during_outage(system, self._calls(system, root))

    # -- helpers

    def _write_in_vain(self, file_system: FileSystem, folder: str) -> None:
        """Make two files, and calls that come to nothing."""
        self.raw_put(f"{folder}/taken", b"x")
        self.raw_put(f"{folder}/source", b"x")
        for number in range(3):
            sink = file_system.open_output(f"{folder}/aborted-{number}")
            sink.write(b"x" * 100_000)
            sink.abort()
            with suppress(IcefieldError):
                file_system.put(f"{folder}/taken", b"y", PutMode.CREATE)
            with suppress(IcefieldError):
                file_system.rename(f"{folder}/source", f"{folder}/taken")

    def _check_left(self, folder: str, left: Iterable[str]) -> None:
        more = sorted({location.removeprefix(f"{folder}/") for location in left} - {"taken", "source"})
        assert not more, f"{len(more)} files were left by 3 aborted streams and 6 refused calls: {more}"

    def _check_none_open(self, root: str, story: str) -> None:
        until = time.monotonic() + _CANCEL_SECONDS
        while (left := self.raw_unfinished(root)) and time.monotonic() < until:
            time.sleep(0.02)
        assert not left, f"the store holds open {', '.join(left or ())} {story}"

    def _check_unseen(self, file_system: FileSystem, location: str, state: str) -> None:
        with pytest.raises(FileMissing):
            file_system.stat(location)
        assert file_system.stat_many([location]) == [None], f"stat_many shows a file that was {state}"
        if FileSystemAbility.LIST in file_system.abilities:
            for shallow in (False, True):
                folder = location.rpartition("/")[0]
                listed = [info.location for info in file_system.list_files(folder, shallow=shallow)]
                assert location not in listed, f"list_files shows a file that was {state} and not published"


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
