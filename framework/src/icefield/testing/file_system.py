"""The suite that a file system must pass.

An author subclasses it, gives two fixtures and two raw helpers that bypass the file system, so that a bug cannot hide
a bug::

    class TestMyStore(FileSystemSuite):
        @pytest.fixture
        def file_system(self):
            return MyStore({"my.endpoint": "http://127.0.0.1:9000"})

        @pytest.fixture
        def root(self):
            return f"my://bucket/{uuid4()}"

        def raw_get(self, location): ...   # bytes, or None when nothing is there
        def raw_put(self, location, data): ...
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from icefield.abc import FileSystem, FileSystemAbility, PutMode
from icefield.errors import FileExists, FileMissing, UnsupportedFeature
from icefield.testing.base import Suite

RACERS = 16
ROUNDS = 10


class FileSystemSuite(Suite):
    """Checks of ``icefield.abc.FileSystem``."""

    @pytest.fixture
    def file_system(self) -> FileSystem:
        """The file system under test."""
        raise pytest.UsageError("give a fixture `file_system` that returns the file system under test")

    @pytest.fixture
    def root(self) -> str:
        """A location below which nothing is, different for each test."""
        raise pytest.UsageError("give a fixture `root` that returns a fresh location, different for each test")

    def raw_get(self, location: str) -> bytes | None:
        """Read a file without the file system under test."""
        raise pytest.UsageError("give a method `raw_get(location)` that reads around the file system")

    def raw_put(self, location: str, data: bytes) -> None:
        """Write a file without the file system under test."""
        raise pytest.UsageError("give a method `raw_put(location, data)` that writes around the file system")

    # -- reading

    def test_a_file_reads_back_whole_and_in_ranges(self, file_system: FileSystem, root: str) -> None:
        """If this fails, look at ``open_input``: read, seek from the start and the end, tell."""
        data = bytes(range(256)) * 64
        self.raw_put(f"{root}/a.bin", data)
        source = file_system.open_input(f"{root}/a.bin")
        try:
            assert source.read() == data
            source.seek(100)
            assert source.read(16) == data[100:116]
            assert source.tell() == 116
            source.seek(-10, 2)
            assert source.read() == data[-10:]
            source.seek(len(data))
            assert source.read(5) == b""
        finally:
            source.close()
        assert source.closed

    def test_pyarrow_reads_an_open_file(self, file_system: FileSystem, root: str) -> None:
        """If this fails, what ``open_input`` returns lacks something that ``pyarrow.PythonFile`` needs."""
        self.raw_put(f"{root}/a.bin", b"0123456789")
        source: Any = file_system.open_input(f"{root}/a.bin")
        file = source if isinstance(source, pa.NativeFile) else pa.PythonFile(source, mode="r")
        assert file.size() == 10
        assert file.read_at(4, 3) == b"3456"
        file.close()

    def test_an_empty_file_is_a_file(self, file_system: FileSystem, root: str) -> None:
        """If this fails, the store takes a file of no bytes for none, or for a folder."""
        self.raw_put(f"{root}/empty", b"")
        assert file_system.stat(f"{root}/empty").size == 0
        assert file_system.open_input(f"{root}/empty").read() == b""

    def test_a_missing_file_raises_file_missing(self, file_system: FileSystem, root: str) -> None:
        """If this fails, translate the SDK's own not-found error at the plugin's border."""
        with pytest.raises(FileMissing) as opened:
            file_system.open_input(f"{root}/no").read()
        with pytest.raises(FileMissing) as looked:
            file_system.stat(f"{root}/no")
        assert f"{root}/no" in str(opened.value)
        assert f"{root}/no" in str(looked.value)

    def test_a_folder_is_no_file(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``stat`` answers for a prefix that only has files below it."""
        self.raw_put(f"{root}/folder/file", b"x")
        with pytest.raises(FileMissing):
            file_system.stat(f"{root}/folder")

    def test_files_are_told_of_together_in_the_order_asked_for(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``stat_many`` leaves out a file that is missing, or mixes up the answers."""
        for size in (1, 2, 3):
            self.raw_put(f"{root}/f/{size}", b"x" * size)
        names = ["3", "no", "1", "", "2", "1"]
        found = file_system.stat_many([f"{root}/f/{name}".rstrip("/") for name in names])
        assert [None if info is None else info.size for info in found] == [3, None, 1, None, 2, 1]
        assert found[0] == file_system.stat(f"{root}/f/3")
        assert file_system.stat_many([]) == []

    def test_names_are_taken_to_the_letter(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a location is decoded, globbed or normalised on its way."""
        for name in ("a b", "a%20b", "a=b,c;d", "ü-日本", "p=1/q=x%2Fy/f", "[x]{y}*?"):
            file_system.put(f"{root}/{name}", name.encode(), PutMode.OVERWRITE)
        for name in ("a b", "a%20b", "a=b,c;d", "ü-日本", "p=1/q=x%2Fy/f", "[x]{y}*?"):
            assert self.raw_get(f"{root}/{name}") == name.encode()
            assert file_system.stat(f"{root}/{name}").size == len(name.encode())

    # -- writing

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

    def test_pyarrow_writes_to_a_stream(self, file_system: FileSystem, root: str) -> None:
        """If this fails, the stream lacks something that pyarrow asks of a Python file."""
        table = pa.table({"a": [1, 2, 3]})
        with file_system.open_output(f"{root}/t.arrow") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        raw = self.raw_get(f"{root}/t.arrow")
        assert raw is not None
        assert pa.ipc.open_file(raw).read_all() == table

    def test_overwriting_replaces_whole(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``put(OVERWRITE)`` appends, or leaves the tail of a longer file."""
        file_system.put(f"{root}/hint", b"a long text", PutMode.OVERWRITE)
        file_system.put(f"{root}/hint", b"7", PutMode.OVERWRITE)
        assert self.raw_get(f"{root}/hint") == b"7"

    # -- atomic steps

    def test_creating_refuses_a_taken_name(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``put(CREATE)`` overwrites: use the store's conditional put, or do not declare it."""
        self.needs(file_system, FileSystemAbility.ATOMIC_CREATE)
        file_system.put(f"{root}/v1", b"first", PutMode.CREATE)
        for data in (b"second", b""):
            with pytest.raises(FileExists):
                file_system.put(f"{root}/v1", data, PutMode.CREATE)
        assert self.raw_get(f"{root}/v1") == b"first"

    def test_an_undeclared_atomic_step_is_refused(self, file_system: FileSystem, root: str) -> None:
        """If this fails, the file system stands in for an atomic step with a check and a write."""
        self.raw_put(f"{root}/a", b"a")
        if FileSystemAbility.ATOMIC_CREATE not in file_system.abilities:
            with pytest.raises(UnsupportedFeature):
                file_system.put(f"{root}/v1", b"x", PutMode.CREATE)
        if FileSystemAbility.ATOMIC_RENAME not in file_system.abilities:
            with pytest.raises(UnsupportedFeature):
                file_system.rename(f"{root}/a", f"{root}/b")
        assert self.raw_get(f"{root}/a") == b"a"

    def test_one_of_many_creators_wins(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``put(CREATE)`` looks first and writes then: two writers both found nothing."""
        self.needs(file_system, FileSystemAbility.ATOMIC_CREATE)
        for turn in range(ROUNDS):
            target = f"{root}/race-{turn}"

            def create(number: int, target: str = target) -> bytes | None:
                data = f"writer {number} ".encode() * 2_000
                try:
                    self.copy(file_system).put(target, data, PutMode.CREATE)
                except FileExists:
                    return None
                return data

            winners = [data for data in _race(create) if data is not None]
            assert len(winners) == 1
            assert self.raw_get(target) == winners[0]

    def test_a_created_file_is_never_seen_half(self, file_system: FileSystem, root: str) -> None:
        """If this fails, the name appears before the bytes do: write aside and publish in one step."""
        self.needs(file_system, FileSystemAbility.ATOMIC_CREATE)
        data = b"0123456789abcdef" * 60_000
        seen: set[int] = set()
        failures: list[Exception] = []
        done = threading.Event()

        def watch() -> None:
            reader = self.copy(file_system)
            while not done.is_set() and not failures:
                for turn in range(ROUNDS):
                    try:
                        seen.add(len(reader.open_input(f"{root}/w{turn}").read()))
                    except FileMissing:
                        break
                    except Exception as error:
                        failures.append(error)
                        break

        watcher = threading.Thread(target=watch)
        watcher.start()
        for turn in range(ROUNDS):
            file_system.put(f"{root}/w{turn}", data, PutMode.CREATE)
        done.set()
        watcher.join()
        assert not failures
        assert seen <= {len(data)}

    def test_renaming_moves_and_refuses_a_taken_name(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``rename`` replaces, as POSIX rename does: use one that cannot."""
        self.needs(file_system, FileSystemAbility.ATOMIC_RENAME)
        self.raw_put(f"{root}/a", b"a")
        self.raw_put(f"{root}/b", b"b")
        with pytest.raises(FileExists):
            file_system.rename(f"{root}/a", f"{root}/b")
        assert (self.raw_get(f"{root}/a"), self.raw_get(f"{root}/b")) == (b"a", b"b")
        file_system.rename(f"{root}/a", f"{root}/c")
        assert (self.raw_get(f"{root}/a"), self.raw_get(f"{root}/c")) == (None, b"a")
        with pytest.raises(FileMissing):
            file_system.rename(f"{root}/a", f"{root}/d")

    def test_one_of_many_renamers_wins(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``rename`` looks first and renames then, or ignores the store's refusal."""
        self.needs(file_system, FileSystemAbility.ATOMIC_RENAME)
        for turn in range(ROUNDS):
            target = f"{root}/race-{turn}"

            def rename(number: int, target: str = target, turn: int = turn) -> bytes | None:
                data = f"writer {number}".encode()
                source = f"{root}/source-{turn}-{number}"
                self.raw_put(source, data)
                try:
                    self.copy(file_system).rename(source, target)
                except FileExists:
                    return None
                return data

            winners = [data for data in _race(rename) if data is not None]
            assert len(winners) == 1
            assert self.raw_get(target) == winners[0]

    # -- listing and deleting

    def test_listing_finds_every_file_below_a_folder(self, file_system: FileSystem, root: str) -> None:
        """If this fails, look at prefixes that are no folders (``a`` against ``ab``), and at paging."""
        self.needs(file_system, FileSystemAbility.LIST)
        names = ["a/1", "a/2", "a/b/3", "a/b/c/4", "ab/5"]
        for number, name in enumerate(names):
            self.raw_put(f"{root}/{name}", b"x" * number)
        for prefix in (f"{root}/a", f"{root}/a/"):
            found = {info.location: info.size for info in file_system.list(prefix)}
            assert found == {f"{root}/{name}": number for number, name in enumerate(names[:4])}
        shallow = {info.location for info in file_system.list(f"{root}/a", shallow=True)}
        assert shallow == {f"{root}/a/1", f"{root}/a/2", f"{root}/a/b/"}
        assert list(file_system.list(f"{root}/nothing")) == []
        assert list(file_system.list(f"{root}/nothing", shallow=True)) == []

    def test_listing_tells_when_a_file_was_written(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``modified_ms`` is in seconds, in local time, or differs between ``list`` and ``stat``."""
        self.needs(file_system, FileSystemAbility.LIST)
        self.raw_put(f"{root}/f", b"x")
        (listed,) = file_system.list(root)
        told = file_system.stat(f"{root}/f").modified_ms
        if listed.modified_ms is not None and told is not None:
            assert abs(listed.modified_ms - told) < 2_000
            assert told > 1_600_000_000_000

    def test_deleting_many_is_content_with_missing_files(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a file that is gone already ends the deletion of the others."""
        for number in range(5):
            self.raw_put(f"{root}/{number}", b"x")
        file_system.delete_many([f"{root}/{number}" for number in (0, 9, 1, 8, 2)])
        file_system.delete_many([])
        assert [self.raw_get(f"{root}/{number}") is None for number in range(5)] == [True, True, True, False, False]

    # -- value semantics

    def test_a_pickled_copy_reads_and_writes(self, file_system: FileSystem, root: str) -> None:
        """If this fails, the file system holds state besides its properties; open connections lazily."""
        copy = self.copy(file_system)
        copy.put(f"{root}/f", b"from the copy", PutMode.OVERWRITE)
        assert file_system.open_input(f"{root}/f").read() == b"from the copy"
        assert type(copy) is type(file_system)
        assert copy.abilities == file_system.abilities

    def test_its_repr_shows_no_property(self, file_system: FileSystem) -> None:
        """If this fails, a credential among the properties would end up in logs."""
        secret = uuid4().hex
        made = type(file_system)({**file_system.properties, "test.secret": secret})
        assert secret not in repr(made)
        assert secret not in str(made)

    def test_any_sequence_of_calls_behaves_like_a_dictionary(self, file_system: FileSystem, root: str) -> None:
        """If this fails, Hypothesis prints the shortest sequence of calls that breaks the contract."""
        machine = _machine(file_system, root)
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=15, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
            ),
        )

    # -- helpers

    def needs(self, file_system: FileSystem, ability: FileSystemAbility) -> None:
        """Skip a check whose ability is not declared."""
        if ability not in file_system.abilities:
            pytest.skip(f"{type(file_system).__name__} does not declare {ability.name}")

    def copy(self, file_system: FileSystem) -> FileSystem:
        """A copy as an executor gets it."""
        made: FileSystem = pickle.loads(pickle.dumps(file_system))
        return made


def _race(action: Callable[[int], bytes | None]) -> list[bytes | None]:
    """Run the action on many threads that start at one instant."""
    barrier = threading.Barrier(RACERS)

    def run(number: int) -> bytes | None:
        barrier.wait()
        return action(number)

    with ThreadPoolExecutor(RACERS) as pool:
        return list(pool.map(run, range(RACERS)))


def _machine(file_system: FileSystem, root: str) -> type[RuleBasedStateMachine]:
    """A state machine that holds the file system against a dictionary."""
    names = st.sampled_from(["a", "b", "d/a", "d/e/f"])
    creates = FileSystemAbility.ATOMIC_CREATE in file_system.abilities
    renames = FileSystemAbility.ATOMIC_RENAME in file_system.abilities
    lists = FileSystemAbility.LIST in file_system.abilities

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.base = f"{root}/{uuid4().hex}"
            self.model: dict[str, bytes] = {}

        @rule(name=names, data=st.binary(max_size=50))
        def overwrite(self, name: str, data: bytes) -> None:
            file_system.put(f"{self.base}/{name}", data, PutMode.OVERWRITE)
            self.model[name] = data

        @rule(name=names, data=st.binary(max_size=50))
        def create(self, name: str, data: bytes) -> None:
            if not creates:
                return
            if name in self.model:
                with pytest.raises(FileExists):
                    file_system.put(f"{self.base}/{name}", data, PutMode.CREATE)
            else:
                file_system.put(f"{self.base}/{name}", data, PutMode.CREATE)
                self.model[name] = data

        @rule(source=names, new=names)
        def rename(self, source: str, new: str) -> None:
            if not renames or source == new:
                return
            if source in self.model and new not in self.model:
                file_system.rename(f"{self.base}/{source}", f"{self.base}/{new}")
                self.model[new] = self.model.pop(source)
            else:
                with pytest.raises((FileExists, FileMissing)):
                    file_system.rename(f"{self.base}/{source}", f"{self.base}/{new}")

        @rule(name=names)
        def delete(self, name: str) -> None:
            file_system.delete_many([f"{self.base}/{name}"])
            self.model.pop(name, None)

        @invariant()
        def every_file_is_as_written(self) -> None:
            for name, data in self.model.items():
                assert file_system.open_input(f"{self.base}/{name}").read() == data
            if lists:
                found = {info.location for info in file_system.list(self.base)}
                assert found == {f"{self.base}/{name}" for name in self.model}

    return Machine
