"""Checks of ``local_path``, ``adoptable_path`` and ``adopt``, for libraries that open files themselves."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
from icefield.abc import FileSystem, FileSystemAbility, InputFile, OutputStream
from icefield.errors import FileMissing, IcefieldError, InvalidFile, StorageError, UnsupportedFeature
from icefield.toolkit import as_input_file

from icefield_testing.file_systems.failures import FailureChecks
from icefield_testing.file_systems.steps import READS, failing_when_done
from icefield_testing.processes import FORKS, ended
from icefield_testing.same_bytes import check_bytes

_MIB: Final = 1024 * 1024
_PATTERN: Final = bytes(range(251))
_DATA: Final = _PATTERN * 80_000
"""Twenty megabytes: more than the kernel reads at once for a copy."""
_MIDDLE: Final = _PATTERN * 12_000
_SMALL: Final = _PATTERN * 100
_MOST_CALLS: Final = 20
_MOST_SECONDS: Final = 30.0


class LocalFileChecks(FailureChecks):
    """Checks of local files: copies to read from, and files that a stream adopts."""

    # -- ``local_path``

    def test_a_local_path_has_the_bytes_of_the_file(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``local_path`` gives a part of the file, a file that ends with ``close``, or one file for two
        opened ones: copy all bytes, to a new name each time."""
        for name, data in {"empty": b"", "small": _SMALL, "large": _DATA}.items():
            self.raw_put(f"{root}/{name}", data)
            source = self._opened(file_system, f"{root}/{name}")
            with source.local_path(len(data)) as path:
                source.close()
                _check_path(path, data, f"the local path of the {name} file")
            with pytest.raises(ValueError, match="closed"), source.local_path(len(data)):
                pass
        self.raw_put(f"{root}/other", b"other")
        one, two = (self._opened(file_system, f"{root}/{name}") for name in ("small", "other"))
        with one.local_path(_MIB) as first:
            with two.local_path(_MIB) as second:
                _check_path(first, _SMALL, "the local path of one of two files")
                _check_path(second, b"other", "the local path of the other of two files")
            _check_path(first, _SMALL, "a local path after the end of another one")
        for source in (one, two):
            source.close()

    def test_a_local_copy_is_deleted(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a copy of ``local_path`` stays when its block ends, ends by an exception or is forgotten, and
        the disk fills: delete it in a ``finally`` block."""
        self.raw_put(f"{root}/f", _SMALL)
        with _temporary_folder() as left:
            for ending in ("normally", "by an exception", "as garbage"):
                source = self._opened(file_system, f"{root}/f")
                block = source.local_path(_MIB)
                path = block.__enter__()
                if ending == "normally":
                    block.__exit__(None, None, None)
                elif ending == "by an exception":
                    with suppress(KeyError):
                        block.__exit__(KeyError, KeyError("the reader failed"), None)
                source.close()
                del source, block
                gc.collect()
                assert not left(), f"a copy is left when its block ends {ending}: {left()}"
                self._check_no_copy(f"{root}/f", path)

    def test_a_forked_process_deletes_no_copy_of_its_parent(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a process that is forked in the block of ``local_path`` deletes the copy when it ends, under
        the hands of its parent: compare ``os.getpid()`` before."""
        if not (FORKS and self.survives_fork):
            pytest.skip("nothing is tried in a forked process")
        self.raw_put(f"{root}/f", _SMALL)
        source = self._opened(file_system, f"{root}/f")
        block: Any = source.local_path(_MIB)
        path = block.__enter__()
        sink = file_system.open_output(f"{root}/new")
        adoptable = sink.adoptable_path()
        Path(adoptable).write_bytes(_SMALL)
        held: list[Any] = [block, sink]
        del block, sink

        def end() -> None:
            with suppress(Exception):
                held[0].__exit__(None, None, None)
            held.clear()

        ended(end, _MOST_SECONDS)
        for name, there in (("``local_path``", path), ("``adoptable_path``", adoptable)):
            assert os.path.exists(there), f"a forked process deleted the file of {name}"
            _check_path(there, _SMALL, f"the file of {name}, after a forked process ended,")
        held[0].__exit__(None, None, None)
        held[1].abort()
        source.close()

    def test_changes_to_a_local_copy_stay_there(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a library that writes to its copy changes the stored file, or the copy of another reader: give
        each block a copy of its own, and send nothing back."""
        self.raw_put(f"{root}/f", _SMALL)
        one, two = (self._opened(file_system, f"{root}/f") for _ in range(2))
        with one.local_path(_MIB) as path:
            stored = self._is_stored(f"{root}/f", path)
            if not stored:
                with two.local_path(_MIB) as other:
                    Path(path).write_bytes(b"changed")
                    _check_path(other, _SMALL, "the copy of another reader")
        for source in (one, two):
            source.close()
        if stored:
            pytest.skip("a local path is that of the stored file")
        found = self.raw_get(f"{root}/f")
        assert found == _SMALL, f"the stored file is {found!r:.40} after a change of a copy"
        with self._opened(file_system, f"{root}/f") as source, source.local_path(_MIB) as path:
            _check_path(path, _SMALL, "the next copy")

    def test_no_more_than_the_stated_bytes_are_copied(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``local_path`` makes a copy that is larger than ``max_bytes``, or refuses one that is not:
        compare the size before anything is copied, and raise ``UnsupportedFeature``."""
        self.raw_put(f"{root}/f", _SMALL)
        with _temporary_folder() as left:
            source = self._opened(file_system, f"{root}/f")
            with source.local_path(len(_SMALL)) as path:
                _check_path(path, _SMALL, "the local path of a file of just ``max_bytes``")
            with suppress(UnsupportedFeature), source.local_path(len(_SMALL) - 1) as path:
                assert self._is_stored(f"{root}/f", path), f"a copy of {len(_SMALL):,} bytes is one more than stated"
            source.close()
            assert not left(), f"a refused copy is left: {left()}"

    def test_a_store_that_fails_makes_no_half_copy(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``local_path`` gives a copy without the bytes that the store did not send, or leaves half a
        copy: raise ``StorageError``, and delete it."""
        self.raw_put(f"{root}/f", _MIDDLE)
        with _temporary_folder() as left:

            def check(block: Any, fault: Callable[[Callable[[], Any]], BaseException | None], story: str) -> None:
                paths: list[str] = []
                error = fault(lambda: paths.append(block.__enter__()))
                if error is None:
                    try:
                        _check_path(paths[0], _MIDDLE, f"when {story}, the local path")
                    finally:
                        block.__exit__(None, None, None)
                else:
                    blames = isinstance(error, FileMissing | InvalidFile) or not isinstance(error, StorageError)
                    assert not blames, f"{error!r} does not say that the store fails: {story}"
                assert not left(), f"when {story}, half a copy is left: {left()}"

            for number in range(_MOST_CALLS):
                made: list[str] = []

                def failing(
                    call: Callable[[], Any], number: int = number, made: list[str] = made
                ) -> BaseException | None:
                    with failing_when_done(number, READS) as calls:
                        error = self._raised(call)
                    made += calls
                    return error

                with self._opened(file_system, f"{root}/f") as source:
                    check(source.local_path(len(_MIDDLE)), failing, f"read {number} of the system fails")
                if len(made) <= number:
                    break
            system = self._reached(file_system, root)
            source = self._opened(system, f"{root}/f")
            out = lambda call: self._during_outage(system, {"local_path": call})["local_path"]  # noqa: E731
            check(source.local_path(len(_MIDDLE)), out, "the store fails")
            with suppress(Exception):
                source.close()

    # -- ``adopt``

    def test_an_adopted_file_is_published_by_close(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``adopt`` publishes before ``close``, loses bytes, counts them wrongly, or leaves the local
        file: it appends a file and takes it over."""
        size = min(self.part_size, 16 * _MIB) + 3
        for name, data in {"empty": b"", "small": _SMALL, "parts": _PATTERN * (size // 251 + 1)}.items():
            location = f"{root}/{name}"
            sink = file_system.open_output(location)
            path = self._written(sink, data)
            self._check_unpublished(file_system, location, "before ``adopt``")
            sink.adopt(path)
            assert not os.path.lexists(path), "``adopt`` left the local file"
            told = sink.tell()
            assert told == len(data), f"tell is {told:,} after a file of {len(data):,} bytes was adopted"
            self._check_unpublished(file_system, location, "by ``adopt``, before ``close``")
            sink.close()
            check_bytes(self.raw_get(location), data, "the adopted file")
            with _file_elsewhere(b"late") as late:
                with pytest.raises(ValueError, match="closed"):
                    sink.adopt(late)
                assert os.path.exists(late), "a closed stream took a file over"

    def test_an_adopted_file_is_one_part_of_the_stream(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``adopt`` replaces what was written before, or a later write goes to another place: it
        appends, as ``write`` does."""
        wanted = {"first": b"", "later": b"before "}
        for name, before in wanted.items():
            sink = file_system.open_output(f"{root}/{name}")
            sink.write(before)
            for _ in range(2):
                sink.adopt(self._written(sink, _SMALL))
                sink.write(b" after")
            told, size = sink.tell(), len(before) + 2 * len(_SMALL + b" after")
            assert told == size, f"tell is {told:,} after {size:,} bytes"
            sink.close()
            whole = before + (_SMALL + b" after") * 2
            check_bytes(self.raw_get(f"{root}/{name}"), whole, "a stream with two adopted files")

    def test_an_adopted_file_is_aborted_with_its_stream(self, file_system: FileSystem, root: str) -> None:
        """If this fails, a file is published or left although its stream was aborted or forgotten: after ``adopt`` it
        belongs to the stream."""
        with _temporary_folder() as left:
            for ending in ("abort", "an exception", "garbage"):
                for adopts in (True, False):
                    location = f"{root}/d/{ending}-{adopts}"
                    sink = file_system.open_output(location)
                    path = self._written(sink, _SMALL)
                    if adopts:
                        sink.adopt(path)
                    if ending == "abort":
                        sink.abort()
                    elif ending == "an exception":
                        sink.__exit__(KeyError, KeyError("the writer failed"), None)
                    del sink
                    gc.collect()
                    assert self.raw_get(location) is None, f"{ending} published an adopted file"
                    story = "an adopted file" if adopts else "a file at ``adoptable_path``"
                    more = [path] if os.path.lexists(path) else []
                    if ending != "garbage":  # a forgotten stream may leave a temporary file of its own
                        more += left()
                    if FileSystemAbility.LIST in file_system.abilities:
                        more += [info.location for info in file_system.list_files(f"{root}/d")]
                    assert not more, f"{ending} left {story}: {more}"

    def test_a_file_at_any_path_is_adopted(self, file_system: FileSystem, root: str) -> None:
        """If this fails, only a file beside the target is adopted, or a file that has another name stays changeable
        by that name after it was published, or one that its owner alone may read is refused: copy such files."""
        with _file_elsewhere(_SMALL) as path:
            with file_system.open_output(f"{root}/elsewhere") as sink:
                sink.adopt(path)
                assert not os.path.lexists(path), "``adopt`` left the local file"
            check_bytes(self.raw_get(f"{root}/elsewhere"), _SMALL, "a file of another folder")
        sink = file_system.open_output(f"{root}/linked")
        path = self._written(sink, _SMALL)
        other = f"{path}-other"
        try:
            os.link(path, other)
        except OSError:
            other = ""
        os.chmod(path, 0o400)
        sink.adopt(path)
        sink.close()
        if other:
            os.chmod(other, 0o600)
            with open(other, "r+b") as file:
                file.write(b"changed")
            os.unlink(other)
        check_bytes(self.raw_get(f"{root}/linked"), _SMALL, "a file that was changed by its other name")

    def test_only_a_regular_file_is_adopted(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``adopt`` publishes a link, whose target can change or vanish, or deletes a folder: raise
        ``ValueError``, and leave the path alone."""
        with _file_elsewhere(b"target") as target:
            folder = os.path.dirname(target)
            link, inner = os.path.join(folder, "link"), os.path.join(folder, "folder")
            os.mkdir(inner)
            with suppress(OSError):
                os.symlink(target, link)
            for path in (link, inner, os.path.join(folder, "missing")):
                sink = file_system.open_output(f"{root}/{os.path.basename(path)}")
                there = os.path.lexists(path)
                error = self._raised(lambda sink=sink, path=path: sink.adopt(path))  # type: ignore[misc]
                sink.abort()
                name = os.path.basename(path)
                assert isinstance(error, ValueError), f"a {name} is adopted, or raises {error!r} and no ValueError"
                assert os.path.lexists(path) == there, f"a refused {name} is gone"
                assert self.raw_get(f"{root}/{name}") is None, f"a refused {name} is published"
            assert Path(target).read_bytes() == b"target", "the target of a link changed"

    def test_an_adoption_that_fails_says_so(self, file_system: FileSystem, root: str) -> None:
        """If this fails, ``adopt`` or the ``close`` after it swallows an error of the disk or of the store, or leaves
        the local file: raise ``StorageError``."""
        for number in range(_MOST_CALLS):
            location = f"{root}/call-{number}"
            sink = file_system.open_output(location)
            path = self._written(sink, _SMALL)
            with failing_when_done(number) as made:
                error = self._raised(lambda sink=sink, path=path: _adopt_and_close(sink, path))  # type: ignore[misc]
            with suppress(Exception):
                sink.abort()
            self._check_adoption(location, path, error, f"EIO after {', '.join(made[: number + 1])}")
            if len(made) <= number:
                break
        system = self._reached(file_system, root)
        sink = system.open_output(f"{root}/lost")
        path = self._written(sink, _SMALL)
        error = self._during_outage(system, {"adopt": lambda: _adopt_and_close(sink, path)})["adopt"]
        with suppress(Exception):
            sink.abort()
        self._check_adoption(f"{root}/lost", path, error, "the store fails")

    # -- helpers

    def _opened(self, file_system: FileSystem, location: str) -> InputFile:
        return as_input_file(file_system.open_input(location))

    def _written(self, sink: OutputStream, data: bytes) -> str:
        """Write a file at the ``adoptable_path`` of a stream, as a library does; return the path."""
        path = sink.adoptable_path()
        assert not os.path.lexists(path), "``adoptable_path`` gives the path of a file that is there"
        Path(path).write_bytes(data)
        return path

    def _is_stored(self, location: str, path: str) -> bool:
        """Whether a path names the stored file itself."""
        before = self.raw_get(location)
        assert before is not None
        self.raw_put(location, b"another")
        found = os.path.exists(path) and Path(path).read_bytes() == b"another"
        self.raw_put(location, before)
        return found

    def _check_no_copy(self, location: str, path: str) -> None:
        if os.path.lexists(path):
            assert self._is_stored(location, path), f"a copy is left at {path}"

    def _check_unpublished(self, file_system: FileSystem, location: str, when: str) -> None:
        assert self.raw_get(location) is None, f"a file is visible {when}"
        if FileSystemAbility.LIST in file_system.abilities:
            folder = location.rpartition("/")[0]
            listed = [info.location for info in file_system.list_files(folder)]
            assert location not in listed, f"a file is listed {when}"

    def _check_adoption(self, location: str, path: str, error: BaseException | None, story: str) -> None:
        found = self.raw_get(location)
        size = "no file" if found is None else f"{len(found):,} of {len(_SMALL):,} bytes"
        if error is None:
            assert found == _SMALL, f"``adopt`` and ``close`` returned, and there is {size}: {story}"
        else:
            wrong = not isinstance(error, IcefieldError) or isinstance(error, ValueError)
            assert not wrong, f"{error!r} is raised, which does not say that the disk or the store fails: {story}"
            assert found in (None, _SMALL), f"{error!r} is raised, and there is {size}: {story}"
        assert not os.path.lexists(path), f"the local file is left: {story}"


def _adopt_and_close(sink: OutputStream, path: str) -> None:
    sink.adopt(path)
    sink.close()


def _check_path(path: str, data: bytes, what: str) -> None:
    check_bytes(Path(path).read_bytes() if os.path.isfile(path) else None, data, what)


@contextmanager
def _temporary_folder() -> Iterator[Callable[[], list[str]]]:
    """A folder for the temporary files of this process, and a function that lists the files and folders in it."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="icefield-kit-") as folder:
        tempfile.tempdir = folder
        try:
            yield lambda: sorted(os.listdir(folder))
        finally:
            tempfile.tempdir = before


@contextmanager
def _file_elsewhere(data: bytes) -> Iterator[str]:
    """A file in a temporary folder that is no stream's ``adoptable_path``."""
    with tempfile.TemporaryDirectory(prefix="icefield-kit-") as folder:
        path = os.path.join(folder, "file")
        Path(path).write_bytes(data)
        yield path
