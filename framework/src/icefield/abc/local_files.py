"""Temporary files on the local disk, for libraries that open files themselves."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from icefield.errors import IcefieldError, StorageError


def path_for(owner: object, folder: str | None = None) -> tuple[str, Callable[[], Any]]:
    """A path in a new folder, and a function that deletes both. It also runs when ``owner`` is garbage.

    A killed process leaves both. In a table's folder, the removal of orphans deletes the file by its suffix.
    """
    with reported("make a temporary folder"):
        made = tempfile.mkdtemp(prefix="icefield-local-", dir=folder)
    return (path := os.path.join(made, "file.icefield-tmp")), weakref.finalize(owner, _delete, path, made, os.getpid())


def _delete(path: str, folder: str, process: int) -> None:
    if os.getpid() == process:  # a forked process has copies of the parent's objects
        for step, place in ((os.unlink, path), (os.rmdir, folder), (shutil.rmtree, folder)):
            with suppress(OSError):  # ``rmtree`` alone needs a descriptor, and there may be none
                step(place)


@contextmanager
def reported(what: str) -> Iterator[None]:
    """Turn an error of the local disk into ``StorageError``."""
    try:
        yield
    except OSError as error:
        if isinstance(error, IcefieldError):
            raise
        raise StorageError(f"cannot {what}: {error.strerror or error}") from error
