"""Bytes, files of pyarrow and any other binary files as input files."""

from __future__ import annotations

import io
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.abc import FileSystemAbility, InputFile
from icefield.builtin.memory import MemoryFileSystem
from icefield.plugins import Plugins
from icefield.storage import FileIO
from icefield.toolkit import ArrowInput, BytesInput, as_input_file

DATA = bytes(range(251)) * 300


class Grudging(io.RawIOBase):
    """An unbuffered file, which may give fewer bytes than it is asked for."""

    def __init__(self, data: bytes) -> None:
        self.inner = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.inner.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        return self.inner.readinto(memoryview(buffer)[:100])


KINDS = {
    "bytes": BytesInput,
    "pyarrow": lambda data: as_input_file(pa.BufferReader(data)),
    "python": lambda data: as_input_file(io.BytesIO(data)),
    "unbuffered": lambda data: as_input_file(Grudging(data)),
}

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(-1, 90_000)),
        st.tuples(st.just("seek"), st.integers(0, 90_000)),
        st.tuples(st.just("end"), st.integers(-200, 9)),
        st.tuples(st.just("at"), st.integers(0, 90_000)),
    ),
    max_size=9,
)


@pytest.mark.parametrize("kind", KINDS)
@given(steps=STEPS)
def test_any_sequence_of_calls_gives_what_a_file_gives(kind: str, steps: list[tuple[str, int]]) -> None:
    ours, model = KINDS[kind](DATA), io.BytesIO(DATA)
    assert ours.size == len(DATA)
    for step, number in steps:
        if step == "read":
            assert ours.read(number) == model.read(number)
        elif step == "seek":
            assert ours.seek(number) == model.seek(number)
        elif step == "end":
            assert ours.seek(number, os.SEEK_END) == model.seek(number, os.SEEK_END)
        else:
            assert ours.read_at(number, 500) == DATA[number : number + 500]
        assert ours.tell() == model.tell()


@pytest.mark.parametrize("kind", KINDS)
def test_pyarrow_reads_it_from_several_threads(kind: str) -> None:
    source = KINDS[kind](DATA)
    files = [source.arrow_file() for _ in range(4)]
    offsets = [number * 7_919 % len(DATA) for number in range(200)]
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda at: files[at % 4].read_at(300, at), offsets)]
    assert found == [DATA[at : at + 300] for at in offsets]


def test_files_of_pyarrow_are_given_to_pyarrow_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(DATA)
    file = pa.OSFile(str(path))
    assert as_input_file(file).arrow_file() is file
    assert isinstance(BytesInput(DATA).arrow_file(), pa.BufferReader)


def test_a_length_beyond_the_end_takes_no_memory() -> None:
    assert ArrowInput(pa.BufferReader(b"abc")).read_at(1, 1 << 60) == b"bc"


def test_an_input_file_is_left_as_it_is() -> None:
    source = BytesInput(b"abc")
    assert as_input_file(source, is_remote=True) is source
    assert not source.is_remote


@pytest.mark.parametrize(("offset", "whence"), [(-1, 0), (0, 7), (-5, 2)])
def test_an_offset_that_is_none_is_refused(offset: int, whence: int) -> None:
    with pytest.raises(ValueError, match=r"before the start|whence"):
        BytesInput(b"abc").seek(offset, whence)


class Plain(MemoryFileSystem):
    """Opens files of Python, as a plugin may."""

    def open_input(self, location: str) -> InputFile:
        return io.BytesIO(super().open_input(location).read())  # type: ignore[return-value]


class PlainRemote(Plain):
    abilities = MemoryFileSystem.abilities | {FileSystemAbility.REMOTE}


@pytest.mark.parametrize("system", [Plain, PlainRemote])
def test_any_file_of_a_file_system_comes_as_an_input_file(
    system: type[MemoryFileSystem], monkeypatch: pytest.MonkeyPatch
) -> None:
    plugins = Plugins.installed()
    monkeypatch.setattr(plugins, "file_system", lambda scheme: system)
    location = f"memory://input/{uuid4().hex}"
    MemoryFileSystem.files[location] = DATA, 0
    for source in (FileIO(plugins).open_input(location), FileIO(plugins).storage(location).open_input(location)):
        assert isinstance(source, InputFile)
        assert source.is_remote == (system is PlainRemote)
        assert source.read_ranges([(5, 5), (0, 2)]) == [DATA[5:10], DATA[:2]]
        source.close()
        with pytest.raises(ValueError, match="closed"):
            source.read_at(0, 1)
