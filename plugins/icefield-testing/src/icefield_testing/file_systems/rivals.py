"""Checks of rivals: another writer or reader acts between any two steps of a call, and every call keeps its promise."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import pytest
from icefield.abc import FileSystem, FileSystemAbility, PutMode
from icefield.errors import FileExists, StorageError
from icefield.toolkit import as_input_file

from icefield_testing.file_systems.base import FileSystemChecks
from icefield_testing.file_systems.steps import between_steps, handing_over

_OURS: Final = b"ours " * 400
_RIVALS: Final = b"the rival's " * 500
_FEWEST_STEPS, _MOST_STEPS = 50, 100
_PRUNING_SECONDS: Final = 20.0
_OUTSIDE_SECONDS: Final = 5.0
_LOCK_SECONDS: Final = 0.1
_DATA: Final = bytes(range(251)) * 1_000


class RivalChecks(FileSystemChecks):
    """Checks with a rival that acts between two steps, so that they do not depend on timing."""

    def test_a_rival_between_two_steps_of_a_creation_does_not_win_as_well(
        self, file_system: FileSystem, root: str
    ) -> None:
        """If this fails, ``put(CREATE)`` looks first and writes then, or two writers share a temporary file: use one
        step of the store that refuses a taken name, and a temporary name that no other writer has."""
        self.needs(file_system, FileSystemAbility.ATOMIC_CREATE)
        self._race(file_system, root, "put(CREATE)", _create, lambda location, data: None)

    def test_a_creation_does_not_replace_the_file_of_another_program(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``put(CREATE)`` looks first and writes then, in a thread or an event loop of the client, which
        keeps out only writers of this process: use one step of the store that refuses a taken name."""
        self.needs(file_system, FileSystemAbility.ATOMIC_CREATE)
        if self.one_process:
            pytest.skip("no other program reaches the store (`one_process`)")
        step, steps = 0, 1
        while step < steps:
            began = time.monotonic()
            steps, story = self._overtaken(file_system, f"{root}/{step}", step)
            if story:  # a store in a thread of this process may be struck within its own step: that is no fault
                story = self._overtaken(file_system, f"{root}/{step}-again", step)[1]
            assert not story, story
            step += _stride(steps, _OUTSIDE_SECONDS, began)

    def test_a_rival_between_two_steps_of_a_renaming_does_not_win_as_well(
        self, file_system: FileSystem, root: str
    ) -> None:
        """If this fails, ``rename`` looks whether the name is free and replaces then, so that a commit is lost, or a
        refused ``rename`` takes its source away: use one step of the store that refuses a taken name."""
        self.needs(file_system, FileSystemAbility.ATOMIC_RENAME)

        def rename(system: FileSystem, location: str, data: bytes) -> None:
            system.rename(_source(location, data), location)

        def prepare(location: str, data: bytes) -> None:
            self.raw_put(_source(location, data), data)

        self._race(file_system, root, "rename", rename, prepare)

    def test_a_read_by_offset_is_not_disturbed_between_two_steps(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``read_at`` seeks and reads then, and another thread moves the position between the two: read
        by offset, or hold a lock around both."""
        self.raw_put(f"{root}/f", _DATA)
        source = as_input_file(file_system.open_input(f"{root}/f"))
        rival = _Rival(lambda: source.read_at(200_000, 500))
        wrong = []
        with source, rival:
            for offset in (0, 7, 100_000, 250_000):
                with between_steps(file_system, rival.act, source):
                    found = source.read_at(offset, 1_000)
                if found != _DATA[offset : offset + 1_000]:
                    wrong.append(f"read_at({offset:,}, 1,000)")
            wrong += ["read_at(200,000, 500)" for data in rival.done() if data != _DATA[200_000:200_500]]
        assert not wrong, f"{len(wrong)} reads gave other bytes while two threads read, the first by {wrong[0]}"

    def test_a_folder_that_vanishes_while_a_file_is_written_is_made_again(
        self, file_system: FileSystem, root: str
    ) -> None:
        """If this fails, another process removed the empty folder of a new file between two steps, as Icefield does
        when it has deleted all files of a folder, and the write fails: make the folder again, a few times at most."""
        if type(file_system).remove_empty_folder is FileSystem.remove_empty_folder:
            pytest.skip("the file system has no folders that could be empty (`remove_empty_folder`)")

        def write(location: str) -> None:
            with file_system.open_output(location) as sink:
                sink.write(_OURS)

        def rename(location: str) -> None:
            source = f"{root}/source-of{location.removeprefix(root)}"
            self.raw_put(source, _OURS)
            file_system.rename(source, location)

        writes: dict[str, Callable[[str], object]] = {
            "put(OVERWRITE)": lambda location: file_system.put(location, _OURS, PutMode.OVERWRITE),
            "open_output": write,
        }
        if FileSystemAbility.ATOMIC_CREATE in file_system.abilities:
            writes["put(CREATE)"] = lambda location: file_system.put(location, _OURS, PutMode.CREATE)
        if FileSystemAbility.ATOMIC_RENAME in file_system.abilities:
            writes["rename"] = rename
        for number, (name, make) in enumerate(writes.items()):
            step, steps = 0, 1
            while step < steps:
                began = time.monotonic()
                steps = self._pruned(file_system, f"{root}/{number}-{step}", name, make, step)
                step += _stride(steps, _PRUNING_SECONDS / len(writes), began)

    # -- helpers

    def _overtaken(self, file_system: FileSystem, root: str, step: int) -> tuple[int, str]:
        """Create a file; after a step another program writes it, if it is not there. Return the number of steps, and
        the fault."""
        passed, overtakes = 0, False

        def look() -> None:
            nonlocal passed, overtakes
            if passed == step and self.raw_get(f"{root}/f") is None:
                overtakes = True
                self.raw_put(f"{root}/f", _RIVALS)
            passed += 1

        with between_steps(file_system, look):
            # It opens its connections and threads here, so that their steps count.
            system = self.alone(file_system)
            error = _error_of(_create, system, f"{root}/f", _OURS)
        found = self.raw_get(f"{root}/f")
        if not overtakes or (found == _RIVALS and error is not None):
            return passed, ""
        kept = "is kept" if found == _RIVALS else "was replaced"
        return (
            passed,
            f"another program's file {kept}, and put(CREATE) says {error!r}: after step {step + 1} of {passed}",
        )

    def _pruned(self, file_system: FileSystem, root: str, name: str, make: Callable[[str], object], step: int) -> int:
        """Write a file in two new folders, and remove both after a step if they are empty; return the number of
        steps."""
        passed = 0
        other = self.copy(file_system)

        def prune() -> None:
            for folder in (f"{root}/a/b", f"{root}/a"):
                other.remove_empty_folder(folder)

        def look() -> None:
            nonlocal passed
            if passed == step:
                rival.act()
            passed += 1

        error: Exception | None = None
        with _Rival(prune) as rival, between_steps(file_system, look):
            try:
                make(f"{root}/a/b/f")
            except Exception as raised:
                error = raised
        story = f"{name}, when its empty folder was removed after step {step + 1} of {passed}"
        assert error is None, f"{story}: {error!r}"
        assert self.raw_get(f"{root}/a/b/f") == _OURS, f"{story}: the file is not there"
        return passed

    def _race(
        self,
        file_system: FileSystem,
        root: str,
        name: str,
        publish: Callable[[FileSystem, str, bytes], None],
        prepare: Callable[[str, bytes], None],
    ) -> None:
        """Let a rival publish under the same name after each step."""
        step, steps = 0, 1
        while step < steps:
            began = time.monotonic()
            location = f"{root}/{name.partition('(')[0]}-{step}/f"
            for data in (_OURS, _RIVALS):
                prepare(location, data)
            steps = self._round(file_system, location, name, publish, step)
            step += _stride(steps, _OUTSIDE_SECONDS, began)

    def _round(
        self,
        file_system: FileSystem,
        location: str,
        name: str,
        publish: Callable[[FileSystem, str, bytes], None],
        step: int,
    ) -> int:
        passed = 0
        other = self.copy(file_system)

        def look() -> None:
            nonlocal passed
            if passed == step:
                rival.act()
            passed += 1

        rival = _Rival(lambda: _error_of(publish, other, location, _RIVALS))
        with rival:
            with between_steps(file_system, look):
                error = _error_of(publish, file_system, location, _OURS)
            answers = rival.done()
        if answers:
            story = (
                f"{name}, with a rival after step {step + 1} of {passed}: ours {error!r}, the rival's {answers[0]!r}"
            )
            self._judge(location, name, story, {_OURS: error, _RIVALS: answers[0]})
        return passed

    def _judge(self, location: str, name: str, story: str, errors: dict[bytes, Exception | None]) -> None:
        for error in errors.values():
            fair = (
                error is None or isinstance(error, FileExists) or (isinstance(error, StorageError) and error.retryable)
            )
            assert fair, f"neither done, nor FileExists, nor left open: {story}"
        winners = [data for data, error in errors.items() if error is None]
        found = self.raw_get(location)
        assert len(winners) < 2, f"both writers were told that they won: {story}"
        assert found in (_OURS, _RIVALS), f"the file is neither writer's: {story}"
        assert winners in ([], [found]), f"the file of the winner was replaced: {story}"
        for data, error in errors.items():
            if name == "rename" and isinstance(error, FileExists) and found != data:
                assert self.raw_get(_source(location, data)) == data, f"a refused source is gone: {story}"


class _Rival:
    """Another thread that acts when asked to, unless a lock keeps it waiting. A context manager."""

    def __init__(self, action: Callable[[], Any]) -> None:
        self._action = action
        self._pool = ThreadPoolExecutor(1)
        self._pool.submit(threading.get_ident).result()  # the thread begins before anything is traced
        self._made: list[Future[Any]] = []
        self._waits = False

    def act(self) -> None:
        """Act, and return when it is done or waits for a lock; from then on do nothing."""
        if not self._waits:
            settled = threading.Event()
            with handing_over(settled.set):  # it waits for this very step if it needs the event loop of this thread
                self._made.append(self._pool.submit(self._untraced))
                self._made[-1].add_done_callback(lambda _: settled.set())
                settled.wait(_LOCK_SECONDS)
            self._waits = not self._made[-1].done()

    def done(self) -> list[Any]:
        """The results of all actions, when they have ended."""
        return [each.result() for each in self._made]

    def _untraced(self) -> Any:
        sys.settrace(None)
        sys.setprofile(None)
        return self._action()

    def __enter__(self) -> _Rival:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()


def _stride(steps: int, seconds: float, began: float) -> int:
    """The distance to the next step after which the rival acts, if a round that ``began`` then has that many steps.

    A slow store gets the rival after some of the steps, far from each other, so that all rounds take these seconds or
    so.
    """
    tries = min(_MOST_STEPS, seconds / (time.monotonic() - began))
    return max(1, math.ceil(steps / max(tries, _FEWEST_STEPS)))


def _create(system: FileSystem, location: str, data: bytes) -> None:
    system.put(location, data, PutMode.CREATE)


def _error_of(
    publish: Callable[[FileSystem, str, bytes], None], system: FileSystem, location: str, data: bytes
) -> Exception | None:
    try:
        publish(system, location, data)
    except Exception as error:
        return error
    return None


def _source(location: str, data: bytes) -> str:
    return f"{location}-source-{len(data)}"
