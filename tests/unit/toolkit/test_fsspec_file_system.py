"""Errors of fsspec become errors of Icefield; listings come folder by folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from icefield.abc import FileSystemAbility
from icefield.errors import AccessDenied, FileExists, FileMissing, LocationRefused, StorageError
from icefield.toolkit import FsspecFileSystem


class Refusing(MemoryFileSystem):  # type: ignore[misc]
    cachable = False
    error: Exception

    def info(self, path: str, **options: Any) -> Any:
        raise self.error


class Store(FsspecFileSystem):
    abilities = frozenset({FileSystemAbility.LIST})

    def connect(self) -> Refusing:
        return Refusing()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermissionError("secret"), AccessDenied),
        (FileNotFoundError("secret"), FileMissing),
        (FileExistsError("secret"), FileExists),
        (NotADirectoryError("secret"), StorageError),
        (ValueError("secret"), StorageError),
    ],
)
def test_an_error_of_the_library_becomes_a_typed_one_with_the_location(
    error: Exception, kind: type[StorageError]
) -> None:
    store = Store({})
    store.fs.error = error
    with pytest.raises(kind) as caught:
        store.stat("memory://store/f")
    assert type(caught.value) is kind
    assert caught.value.data["location"] == "memory://store/f"
    assert "secret" not in str(caught.value)


class Counting(LocalFileSystem):  # type: ignore[misc]
    cachable = False
    listed = 0

    def ls(self, path: str, **options: Any) -> Any:
        self.listed += 1
        return super().ls(path, **options)


class CountingStore(FsspecFileSystem):
    abilities = frozenset({FileSystemAbility.LIST})

    def connect(self) -> Counting:
        return Counting()


def test_a_listing_gives_the_files_of_a_folder_before_it_lists_the_next(tmp_path: Path) -> None:
    for number in range(20):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        (folder / "f").write_bytes(b"x")
    store = CountingStore({})
    found = store.list_files(f"file://{tmp_path}")
    assert next(found).size == 1
    assert store.fs.listed == 2
    assert len([*found]) == 19
    assert store.fs.listed == 21


def test_a_folder_that_fails_in_the_middle_of_a_listing_is_an_error(tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "f").write_bytes(b"x")
    store = CountingStore({})
    found = store.list_files(f"file://{tmp_path}")
    next(found)
    store.fs.ls = refuse
    with pytest.raises(AccessDenied, match="no access to file://"):
        next(found)


def refuse(*_: object, **__: object) -> None:
    raise PermissionError("secret")


def test_a_slash_at_the_end_of_a_file_is_refused(tmp_path: Path) -> None:
    store = CountingStore({})
    (tmp_path / "f").write_bytes(b"x")
    with pytest.raises(LocationRefused, match="it ends with a slash"):
        store.delete_many([f"file://{tmp_path}/f/"])
    assert (tmp_path / "f").exists()
    assert [info.size for info in store.list_files(f"file://{tmp_path}/")] == [1]
