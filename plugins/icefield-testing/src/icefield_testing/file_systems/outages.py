"""Checks of a store that fails halfway: in ``close`` alone, in the middle of a listing, and in each kind of read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import Any, Final

from icefield.abc import FileSystem, FileSystemAbility, InputFile, PutMode
from icefield.errors import FileMissing, IcefieldError, InvalidFile, StorageError
from icefield.toolkit import as_input_file

from icefield_testing.file_systems.failures import FailureChecks
from icefield_testing.file_systems.steps import READS, failing_when_done
from icefield_testing.same_bytes import check_bytes

_DATA: Final = bytes(range(251)) * 12_000
_BODY: Final = b"body " * 2_000
_MOST_CALLS: Final = 20
_MOST_LISTED: Final = 200

_Read = Callable[[InputFile], bytes]
_READINGS: Final[dict[str, _Read]] = {
    "read": lambda source: source.read(),
    "read_at": lambda source: source.read_at(0, len(_DATA)),
    "read_ranges": lambda source: b"".join(source.read_ranges([(at, 502_000) for at in range(0, len(_DATA), 502_000)])),
    "arrow_file": lambda source: source.arrow_file().read(),
}


class OutageChecks(FailureChecks):
    """Checks of a store that fails halfway. They need ``outage``."""

    def test_a_close_that_fails_says_so(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``close`` swallows an error of the store, and a writer takes a file that is not there for
        published: let ``close`` raise ``StorageError``."""
        for number in range(_MOST_CALLS):
            location = f"{root}/call-{number}"
            sink = file_system.open_output(location)
            sink.write(_BODY)
            with failing_when_done(number) as made:
                error = self._raised(sink.close)
            with suppress(Exception):
                sink.abort()
            self._check_close(location, error, f"EIO after {', '.join(made[: number + 1])}")
            if len(made) <= number:
                break
        system = self._reached(file_system, root)
        sink = system.open_output(f"{root}/lost")
        sink.write(_BODY)
        error = self._during_outage(system, {"close": sink.close})["close"]
        with suppress(Exception):
            sink.abort()
        self._check_close(f"{root}/lost", error, "the store fails")

    def test_no_way_to_read_takes_a_failure_for_the_end_of_the_file(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``read``, ``read_at``, ``read_ranges`` or ``arrow_file`` gives fewer bytes when the store does
        not answer, and rows are missing without an error: raise ``StorageError``."""
        self.raw_put(f"{root}/f", _DATA)
        opened: dict[str, InputFile] = {}
        found: dict[str, bytes] = {}

        def reading(name: str) -> Callable[[], None]:
            return lambda: found.update({name: _READINGS[name](opened[name])})

        for name in _READINGS:
            for number in range(_MOST_CALLS):
                opened[name] = as_input_file(file_system.open_input(f"{root}/f"))
                found.pop(name, None)
                with failing_when_done(number, READS) as made:
                    error = self._raised(reading(name))
                with suppress(Exception):
                    opened[name].close()
                _check_read(name, error, found.get(name), f"EIO after {', '.join(made[: number + 1])}")
                if len(made) <= number:
                    break
        system = self._reached(file_system, root)
        opened.update({name: as_input_file(system.open_input(f"{root}/f")) for name in _READINGS})
        found.clear()
        errors = self._during_outage(system, {name: reading(name) for name in _READINGS})
        for source in opened.values():
            with suppress(Exception):
                source.close()
        for name, error in errors.items():
            _check_read(name, error, found.get(name), "the store fails")

    def test_a_listing_that_fails_halfway_does_not_end(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a listing ends early when the store does not answer for its next page, and files look as if
        they were gone: raise ``StorageError`` from the iterator."""
        self.needs(file_system, FileSystemAbility.LIST)
        count = min(self.listing_page, _MOST_LISTED) + 2
        names = {f"{root}/d/{number:04}" for number in range(count)}
        for name in names:
            self.raw_put(name, b"x")
        system = self._reached(file_system, root)
        for shallow in (False, True):
            listing = system.list_files(f"{root}/d", shallow=shallow)
            found = {info.location for info in islice(listing, 1)}
            rest: Any = lambda listing=listing, found=found: found.update(info.location for info in listing)  # noqa: E731
            error = self._during_outage(system, {"list_files": rest})["list_files"]
            if error is None:
                assert found == names, f"a listing ended after {len(found)} of {count} files when the store failed"
            else:
                assert isinstance(error, StorageError), f"list_files: {error!r} is no StorageError"

    def test_no_method_passes_over_a_store_that_fails(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``stat``, ``stat_many``, ``delete_many`` or ``rename`` takes a store that does not answer for
        a file that is missing, or for a success: raise ``StorageError``."""
        self.raw_put(f"{root}/doomed", b"x")
        self.raw_put(f"{root}/old", b"x")
        self.raw_put(f"{root}/f", b"xyz")
        system = self._reached(file_system, root)
        sizes: dict[str, Any] = {}
        calls: dict[str, Callable[[], Any]] = {
            "stat": lambda: sizes.update({"stat": system.stat(f"{root}/f").size}),
            "stat_many": lambda: sizes.update(
                {"stat_many": [info and info.size for info in system.stat_many([f"{root}/f", f"{root}/f"])]}
            ),
            "delete_many": lambda: system.delete_many([f"{root}/doomed"]),
        }
        if FileSystemAbility.ATOMIC_RENAME in system.abilities:
            calls["rename"] = lambda: system.rename(f"{root}/old", f"{root}/new")
        errors = self._during_outage(system, calls)
        done = {
            "stat": sizes.get("stat") == 3,
            "stat_many": sizes.get("stat_many") == [3, 3],
            "delete_many": self.raw_get(f"{root}/doomed") is None,
            "rename": self.raw_get(f"{root}/new") == b"x",
        }
        for name, error in errors.items():
            if error is None:
                assert done[name], f"{name} passes over a store that fails: {sizes.get(name, 'it returned')}"
            else:
                wrong = not isinstance(error, StorageError) or isinstance(error, FileMissing)
                assert not wrong, f"{name} takes a store that fails for {error!r}"

    def test_what_stays_as_it_is_is_not_retryable(self, file_system: FileSystem, root: str) -> None:
        """If this fails, an error that no repetition can change is ``retryable``, and callers wait for nothing: it is
        for a store that may answer later, and for an outcome that is not known."""
        self.raw_put(f"{root}/file", b"x")
        mode = PutMode.CREATE if FileSystemAbility.ATOMIC_CREATE in file_system.abilities else PutMode.OVERWRITE
        calls: dict[str, Callable[[], Any]] = {
            "open_input of a missing file": lambda: file_system.open_input(f"{root}/no").read(),
            "stat of a missing file": lambda: file_system.stat(f"{root}/no"),
            "put under a name of 5,000 characters": lambda: file_system.put(f"{root}/{'x' * 5_000}", b"x", mode),
            "put below a file": lambda: file_system.put(f"{root}/file/below", b"x", mode),
        }
        if FileSystemAbility.ATOMIC_CREATE in file_system.abilities:
            calls["put(CREATE) of a taken name"] = lambda: file_system.put(f"{root}/file", b"y", mode)
        if FileSystemAbility.ATOMIC_RENAME in file_system.abilities:
            self.raw_put(f"{root}/other", b"x")
            calls["rename to a taken name"] = lambda: file_system.rename(f"{root}/other", f"{root}/file")
            calls["rename of a missing file"] = lambda: file_system.rename(f"{root}/no", f"{root}/new")
        for name, call in calls.items():
            error = self._raised(call)
            if error is not None:
                assert isinstance(error, IcefieldError), f"{name}: {error!r} is none of Icefield's errors"
                assert not error.retryable, f"{name}: {error!r} is retryable"

    def _check_close(self, location: str, error: BaseException | None, story: str) -> None:
        found = self.raw_get(location)
        size = "no file" if found is None else f"{len(found):,} of {len(_BODY):,} bytes"
        if error is None:
            assert found == _BODY, f"``close`` returned, and there is {size}: {story}"
            return
        assert isinstance(error, IcefieldError), f"``close`` raises {error!r}, none of Icefield's errors: {story}"
        assert found in (None, _BODY), f"``close`` raises {error!r}, and there is {size}: {story}"


def _check_read(name: str, error: BaseException | None, found: bytes | None, story: str) -> None:
    if error is None:
        check_bytes(found or b"", _DATA, f"{name} raised no error ({story}), and its result")
        return
    blames = isinstance(error, FileMissing | InvalidFile) or not isinstance(error, OSError | StorageError)
    assert not blames, f"{name} raises {error!r}, which does not say that the store fails: {story}"
