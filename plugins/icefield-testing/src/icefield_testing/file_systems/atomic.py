"""Checks of the atomic steps: one writer wins a name, and no file is ever visible in part, even after a crash."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable

import pytest
from icefield.abc import FileSystem, FileSystemAbility, PutMode
from icefield.errors import FileExists, FileMissing, IcefieldError, NotDurable, UnsupportedFeature

from icefield_testing.file_systems import dying
from icefield_testing.file_systems.base import ROUNDS, FileSystemChecks, race
from icefield_testing.file_systems.steps import between_steps, failing_when_done
from icefield_testing.processes import ended, ran

BODY = b"0123456789abcdef" * 16_384
OLD = b"as it was before"
_MOST_CALLS = 60


class AtomicChecks(FileSystemChecks):
    """Checks of ``put`` and ``rename``."""

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
        for trial in range(ROUNDS):
            target = f"{root}/race-{trial}"

            def create(number: int, target: str = target) -> bytes | None:
                data = f"writer {number} ".encode() * 2_000
                try:
                    self.copy(file_system).put(target, data, PutMode.CREATE)
                except FileExists:
                    return None
                return data

            winners = [data for data in race(create) if data is not None]
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
                for trial in range(ROUNDS):
                    try:
                        seen.add(len(reader.open_input(f"{root}/w{trial}").read()))
                    except FileMissing:
                        break
                    except Exception as error:
                        failures.append(error)
                        break

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for trial in range(ROUNDS):
                file_system.put(f"{root}/w{trial}", data, PutMode.CREATE)
        finally:
            done.set()
            watcher.join()
        assert not failures
        assert seen <= {len(data)}

    def test_nobody_sees_a_step_of_a_creation(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``put(CREATE)`` opens the final name, as ``O_EXCL`` does, and writes there: a reader, or a
        process after a crash, finds a part of the file. Write aside and publish in one step."""
        self.needs(file_system, FileSystemAbility.ATOMIC_CREATE)
        self._watch(file_system, f"{root}/f", {None, BODY}, lambda at: file_system.put(at, BODY, PutMode.CREATE))

    def test_nobody_sees_a_step_of_an_overwriting(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``put(OVERWRITE)`` empties or fills the file where it is: a reader finds none, a part, or a
        mixture. Write aside and replace in one step."""
        self.raw_put(f"{root}/f", OLD)
        self._watch(file_system, f"{root}/f", {OLD, BODY}, lambda at: file_system.put(at, BODY, PutMode.OVERWRITE))

    def test_nobody_sees_a_step_of_a_stream(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``close`` copies to the final name: publish in one step."""

        def write(location: str) -> None:
            with file_system.open_output(location) as sink:
                sink.write(BODY[:1000])
                sink.write(BODY[1000:])

        self._watch(file_system, f"{root}/f", {None, BODY}, write)

    def test_nobody_sees_a_step_of_a_renaming(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``rename`` copies and deletes: a reader finds a part, or neither name."""
        self.needs(file_system, FileSystemAbility.ATOMIC_RENAME)
        self.raw_put(f"{root}/old", BODY)
        self._watch(file_system, f"{root}/f", {None, BODY}, lambda at: file_system.rename(f"{root}/old", at))
        assert self.raw_get(f"{root}/old") is None

    def test_a_step_that_was_done_and_failed_is_not_called_a_failure(self, file_system: FileSystem, root: str) -> None:
        """If this fails, the file was published, the system call then reported an error, as on a network disk whose
        reply was lost, and the error that is raised says that nothing happened: look whether the file is there under
        both names, or raise a ``StorageError`` that is ``retryable``."""
        calls: dict[str, Callable[[str], object]] = {}
        if FileSystemAbility.ATOMIC_CREATE in file_system.abilities:
            calls["put(CREATE)"] = lambda at: file_system.put(at, BODY, PutMode.CREATE)
        if FileSystemAbility.ATOMIC_RENAME in file_system.abilities:
            calls["rename"] = lambda at: file_system.rename(f"{at}-old", at)
        for name, call in calls.items():
            for number in range(_MOST_CALLS):
                location = f"{root}/{name.partition('(')[0]}-{number}/f"
                if name == "rename":
                    self.raw_put(f"{location}-old", BODY)
                error: Exception | None = None
                with failing_when_done(number) as made:
                    try:
                        call(location)
                    except Exception as found:
                        error = found
                story = f"{name}, EIO after {', '.join(made[: number + 1])}: {error!r}"
                if error is None:
                    assert self.raw_get(location) == BODY, f"said to be done, and is not: {story}"
                else:
                    assert isinstance(error, IcefieldError), f"not one of Icefield's errors: {story}"
                    left_open = error.retryable or isinstance(error, NotDurable)
                    assert left_open or self.raw_get(location) is None, f"published, and called a failure: {story}"
                if len(made) <= number:
                    break

    def test_a_process_that_dies_while_it_writes_leaves_no_part(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a part of the file is under its final name when the writer dies: ``put(CREATE)`` must leave
        nothing, ``put(OVERWRITE)`` the file of before, and a stream nothing. Write aside and publish in one step."""
        self.needs_processes()
        self.raw_put(f"{root}/overwritten", OLD)
        self._dies(file_system, f"{root}/overwritten", OLD, PutMode.OVERWRITE)
        if FileSystemAbility.ATOMIC_CREATE in file_system.abilities:
            self._dies(file_system, f"{root}/created", None, PutMode.CREATE)
        self._dies(file_system, f"{root}/streamed", None, None)

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

    def test_no_folder_is_needed_to_write_or_rename(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``put``, ``open_output`` or ``rename`` fails where no file was in the folder before: make the
        folders of the store, if it has any."""
        calls: dict[str, Callable[[str], object]] = {
            "put(OVERWRITE)": lambda at: file_system.put(at, BODY, PutMode.OVERWRITE)
        }
        if FileSystemAbility.ATOMIC_CREATE in file_system.abilities:
            calls["put(CREATE)"] = lambda at: file_system.put(at, BODY, PutMode.CREATE)
        if FileSystemAbility.ATOMIC_RENAME in file_system.abilities:
            self.raw_put(f"{root}/source", BODY)
            calls["rename"] = lambda at: file_system.rename(f"{root}/source", at)
        for number, (name, call) in enumerate(calls.items()):
            try:
                call(f"{root}/new-{number}/deep/f")
            except IcefieldError as error:
                raise AssertionError(f"{name} into a new folder: {error!r}") from error
            assert self.raw_get(f"{root}/new-{number}/deep/f") == BODY, f"{name} into a new folder did nothing"

    def test_one_of_many_renamers_wins(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``rename`` looks first and renames then, or ignores the store's refusal."""
        self.needs(file_system, FileSystemAbility.ATOMIC_RENAME)
        for trial in range(ROUNDS):
            target = f"{root}/race-{trial}"

            def rename(number: int, target: str = target, trial: int = trial) -> bytes | None:
                data = f"writer {number}".encode()
                source = f"{root}/source-{trial}-{number}"
                self.raw_put(source, data)
                try:
                    self.copy(file_system).rename(source, target)
                except FileExists:
                    return None
                return data

            winners = [data for data in race(rename) if data is not None]
            assert len(winners) == 1
            assert self.raw_get(target) == winners[0]

    # -- helpers

    def _watch(
        self, file_system: FileSystem, location: str, allowed: set[bytes | None], change: Callable[[str], object]
    ) -> None:
        """Look at the files after each step of a change."""
        seen: list[bytes | None] = []

        def look() -> None:
            found = self.raw_get(location)
            if not seen or seen[-1] != found:
                seen.append(found)

        with between_steps(file_system, look):
            change(location)
        assert self.raw_get(location) == BODY
        partial = [None if found is None else len(found) for found in seen if found not in allowed]
        assert not partial, (
            f"between two steps it had {partial} bytes (None: it was missing), of {len(BODY)} in the end"
        )

    def _dies(self, file_system: FileSystem, location: str, left: bytes | None, mode: PutMode | None) -> None:
        """Write by ``put`` (or by a stream if there is no mode) in a process that the system kills when a file has half
        of the body.

        A store over a network gets only whole requests from it, since the process writes no local file.
        """
        rest = (location, mode.value if mode else None, BODY)
        if self.survives_fork:
            status = ended(lambda: dying.write_and_die(self.alone(file_system), *rest), 60.0)
        else:
            status, errors = ran(dying.__file__, pickle.dumps((self.alone(file_system), *rest)), 60.0)
            assert status != dying.NOT_LOADED, f"a fresh interpreter cannot load the file system\n{errors}"
        found = self.raw_get(location)
        if status == 0:
            assert found == BODY
        else:
            size = None if found is None else len(found)
            assert found == left, f"a process that died ({status}) left {size} bytes of {len(BODY)} under the name"
