"""Local disks give and take paths: without a copy where that is safe."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest
from icefield import MemoryFileSystem
from icefield.builtin.local import LocalFileSystem
from icefield.errors import FileMissing, StorageError

SYSTEM = LocalFileSystem()


def adopted(location: str, data: bytes, path: str | None = None) -> tuple[Path, int]:
    """The file at a location whose stream adopted another one, and the inode of that one."""
    sink = SYSTEM.open_output(location)
    path = path or sink.adoptable_path()
    Path(path).write_bytes(data)
    inode = os.stat(path).st_ino
    sink.adopt(path)
    sink.close()
    return Path(location), inode


def test_a_stored_file_is_read_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"data")
    with SYSTEM.open_input(f"file://{tmp_path}/f") as source, source.local_path(0) as path:
        assert path == f"{tmp_path}/f"
    assert (tmp_path / "f").read_bytes() == b"data"


def test_a_file_that_was_deleted_after_it_was_opened_has_no_path(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"data")
    source = SYSTEM.open_input(f"{tmp_path}/f")
    (tmp_path / "f").unlink()
    with pytest.raises(FileMissing, match="no file"), source.local_path(0):
        pass


def test_a_file_is_adopted_without_a_copy(tmp_path: Path) -> None:
    published, inode = adopted(f"{tmp_path}/new/f", b"data")
    assert published.stat().st_ino == inode
    assert published.read_bytes() == b"data"
    assert os.listdir(published.parent) == ["f"]


def test_an_adopted_file_may_be_read_by_others_as_a_written_one_may(tmp_path: Path) -> None:
    with SYSTEM.open_output(f"{tmp_path}/written") as sink:
        sink.write(b"x")
    descriptor, path = tempfile.mkstemp(dir=tmp_path)  # only its owner may read it
    os.close(descriptor)
    published, _ = adopted(f"{tmp_path}/f", b"data", path)
    assert stat.S_IMODE(published.stat().st_mode) == stat.S_IMODE((tmp_path / "written").stat().st_mode)


def test_a_file_of_another_disk_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = os.replace

    def refused(source: str, target: str) -> None:
        if source.startswith(f"{tmp_path}/other-disk"):
            raise OSError(18, os.strerror(18))  # EXDEV
        right(source, target)

    monkeypatch.setattr(os, "replace", refused)
    other = tmp_path / "other-disk"
    other.mkdir()
    published, inode = adopted(f"{tmp_path}/f", b"data", str(other / "file"))
    assert published.stat().st_ino != inode
    assert published.read_bytes() == b"data"
    assert os.listdir(other) == []


def test_a_rename_with_a_lost_reply_is_a_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = os.replace

    def lost(source: str, target: str) -> None:
        right(source, target)
        raise OSError(5, os.strerror(5))  # EIO, of a network disk

    monkeypatch.setattr(os, "replace", lost)
    published, inode = adopted(f"{tmp_path}/f", b"data")
    assert published.stat().st_ino == inode


def test_what_a_library_leaves_beside_its_file_is_deleted_with_the_stream(tmp_path: Path) -> None:
    sink = SYSTEM.open_output(f"{tmp_path}/f")
    path = sink.adoptable_path()
    assert path.endswith(".icefield-tmp")
    assert os.path.basename(os.path.dirname(path)).startswith("icefield-local-")
    for name in (path, f"{path}-journal"):
        Path(name).write_bytes(b"x")
    sink.abort()
    del sink
    assert os.listdir(tmp_path) == []


def test_a_temporary_folder_that_cannot_be_made_is_an_error_of_the_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", f"{tmp_path}/missing")
    with pytest.raises(StorageError, match="cannot make a temporary folder: No such file"):
        MemoryFileSystem().open_output("memory://unit/f").adoptable_path()
