"""Checks of a failing store: one error of Icefield's states the failure, hides nothing, and shows no credential."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from uuid import uuid4

from icefield.abc import FileSystem, FileSystemAbility, PutMode
from icefield.errors import FileExists, FileMissing, StorageError, UnsupportedFeature

from icefield_testing.file_systems.base import FileSystemChecks
from icefield_testing.planted_secrets import PlantedSecret

_SIZE = 3_000_000


class FailureChecks(FileSystemChecks):
    """Checks of errors. They need ``outage``."""

    def test_a_store_that_fails_is_a_storage_error(self, file_system: FileSystem, root: str) -> None:
        """If this fails, an error of the SDK or of the system leaves the plugin, or a failure passes for a file that is
        missing, there already, or done: translate each error at the plugin's border to ``StorageError``."""
        system = self._reached(file_system, root)
        for name, error in self._during_outage(system, self._calls(system, root)).items():
            assert error is not None, f"{name} says nothing of a store that fails"
            assert isinstance(error, StorageError), f"{name}: {error!r} is no StorageError"
            wrong = isinstance(error, FileMissing | FileExists | UnsupportedFeature)
            assert not wrong, f"{name} takes a store that fails for {type(error).__name__}"

    def test_a_read_that_fails_blames_the_store_and_not_the_file(self, file_system: FileSystem, root: str) -> None:
        """If this fails, what ``open_input`` returns reads less, or calls the file invalid, when the store fails in the
        middle: raise ``StorageError``, so that nobody takes a file for damaged that is whole."""
        data = bytes(range(251)) * (_SIZE // 251)
        for location in (f"{root}/whole", f"{root}/cut"):
            self.raw_put(location, data)
        system = self._reached(file_system, root)
        source = system.open_input(f"{root}/cut")
        read: list[bytes] = []
        error = self._during_outage(system, {"read": lambda: read.append(_in_pieces(source))})["read"]
        with suppress(Exception):
            source.close()
        if error is None:  # it was all here, or the system has it
            assert read == [data], "a read ends early, as if the file did, when the store fails"
        else:
            assert isinstance(error, StorageError), f"{error!r} is no StorageError"
            assert not isinstance(error, FileMissing), f"{error!r} says that the file is missing"

    def test_a_stream_that_cannot_be_written_says_so(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``write`` or ``close`` swallows what the store said, or shows a part of the file."""
        system = self._reached(file_system, root)
        sink = system.open_output(f"{root}/lost")
        sink.write(b"x" * 1000)

        def finish() -> None:
            sink.write(b"y" * 1000)
            sink.close()

        error = self._during_outage(system, {"close": finish})["close"]
        with suppress(Exception):
            sink.abort()
        assert error is not None, "``close`` returned, and nothing was published"
        assert isinstance(error, StorageError), f"{error!r} is no StorageError"
        assert self.raw_get(f"{root}/lost") is None

    def test_no_credential_is_in_an_error(self, file_system: FileSystem, root: str) -> None:
        """If this fails, an error shows a property, or what an SDK said that repeats one: name the location, and what
        kind of error it was."""
        secret = PlantedSecret()
        system = self._reached(file_system, root, **{"test.secret": secret.value})
        secret.search_also(system.properties)
        errors = [self._raised(call) for call in self._refused(system, root).values()]
        errors += self._during_outage(system, self._calls(system, root)).values()
        for error in errors:
            if error is not None:
                secret.check_error("a call", error)

    # -- helpers

    def _reached(self, file_system: FileSystem, root: str, **properties: str) -> FileSystem:
        """A separate file system that has reached the store before, so that only the outage can make it fail."""
        system = self.alone(file_system, **properties)
        system.put(f"{root}/there", b"x", PutMode.OVERWRITE)
        for call in (*self._refused(system, root).values(), *self._calls(system, root).values()):
            self._raised(call)
        return system

    def _during_outage(
        self, system: FileSystem, calls: Mapping[str, Callable[[], Any]]
    ) -> dict[str, BaseException | None]:
        with self.outage(system):
            return {name: self._raised(call) for name, call in calls.items()}

    def _raised(self, call: Callable[[], Any]) -> BaseException | None:
        try:
            call()
        except Exception as error:
            return error
        return None

    def _calls(self, system: FileSystem, root: str) -> dict[str, Callable[[], Any]]:
        """A call of each method that the store would answer without the outage."""
        there = f"{root}/there"

        def write() -> None:
            with system.open_output(f"{root}/{uuid4().hex}") as sink:
                sink.write(b"x")

        calls: dict[str, Callable[[], Any]] = {
            "open_input": lambda: system.open_input(there).read(),
            "put(OVERWRITE)": lambda: system.put(there, b"x", PutMode.OVERWRITE),
            "open_output": write,
        }
        if FileSystemAbility.LIST in system.abilities:
            calls["list_files"] = lambda: [*system.list_files(root)]
        if FileSystemAbility.ATOMIC_CREATE in system.abilities:
            calls["put(CREATE)"] = lambda: system.put(f"{root}/{uuid4().hex}", b"x", PutMode.CREATE)
        return calls

    def _refused(self, system: FileSystem, root: str) -> dict[str, Callable[[], Any]]:
        """Calls that the store refuses."""
        calls: dict[str, Callable[[], Any]] = {
            "open_input": lambda: system.open_input(f"{root}/no").read(),
            "stat": lambda: system.stat(f"{root}/no"),
        }
        if FileSystemAbility.ATOMIC_CREATE in system.abilities:
            calls["put(CREATE)"] = lambda: system.put(f"{root}/there", b"y", PutMode.CREATE)
        if FileSystemAbility.ATOMIC_RENAME in system.abilities:
            calls["rename"] = lambda: system.rename(f"{root}/no", f"{root}/new")
        return calls


def _in_pieces(source: Any) -> bytes:
    read = b""
    while data := source.read(200_000):
        read += data
    return read
