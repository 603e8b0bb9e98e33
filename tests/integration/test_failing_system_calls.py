"""System calls that take effect and still report an error, like calls to a network disk whose reply is lost."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from icefield.errors import CommitStateUnknown

CALLS = ("link", "replace", "rename", "unlink", "mkdir", "stat", "fsync", "close", "write", "open", "scandir", "lstat")
MOST = 400
STRIDE = 1 if os.environ.get("ICEFIELD_SOAK") else 16  # of the calls of a commit, the one that fails


class Calls:
    """Counts system calls on a folder's files; the call with the number ``failing`` takes effect and then raises."""

    def __init__(self, failing: int, error: Callable[[], BaseException]) -> None:
        self.failing, self.error = failing, error
        self.made: list[str] = []
        self.lost_folder = False

    def wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def done(*args: Any, **kwargs: Any) -> Any:
            of_folder = name == "fsync" and stat.S_ISDIR(os.fstat(args[0]).st_mode)
            result = call(*args, **kwargs)
            self.made.append(f"{name} {args[:2]}")
            if len(self.made) - 1 == self.failing:
                self.lost_folder = of_folder
                if name == "scandir":
                    result.close()
                raise self.error()
            return result

        return done


@contextmanager
def failing(calls: Calls) -> Iterator[None]:
    before = {name: getattr(os, name) for name in CALLS}
    for name, call in before.items():
        setattr(os, name, calls.wrapped(name, call))
    try:
        yield
    finally:
        for name, call in before.items():
            setattr(os, name, call)


def _catalog(kind: str, folder: Path) -> Catalog:
    if kind == "sql":
        return load_catalog("f", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/wh")
    return load_catalog("f", type="directory", warehouse=f"file://{folder}/wh", commit=kind)


ERRORS: dict[str, Callable[[], BaseException]] = {
    "EIO": lambda: OSError(errno.EIO, "Input/output error"),
    "ESTALE": lambda: OSError(errno.ESTALE, "Stale file handle"),
    "ETIMEDOUT": lambda: OSError(errno.ETIMEDOUT, "Connection timed out"),
    "EEXIST": lambda: FileExistsError(errno.EEXIST, "File exists"),  # a request that was sent twice
    "memory": MemoryError,
    "interrupt": KeyboardInterrupt,
}


@pytest.mark.slow
@pytest.mark.counted
@pytest.mark.parametrize("kind", ["create", "rename", "sql"])
@pytest.mark.parametrize("error", ERRORS)
def test_a_commit_whose_system_call_was_done_and_failed_is_never_called_a_failure(
    tmp_path: Path, kind: str, error: str
) -> None:
    _catalog(kind, tmp_path).create_namespace("db")
    schema = pa.schema([("id", pa.int64())])
    said: dict[str, int] = {}
    first = (list(ERRORS).index(error) * 3 + ("create", "rename", "sql").index(kind)) % STRIDE
    for step in range(first, MOST, STRIDE):
        name = f"db.t{step}"
        catalog = _catalog(kind, tmp_path)
        table = catalog.create_table(name, schema, properties={"write.format.default": "avro"})
        calls = Calls(step, ERRORS[error])
        answer: BaseException | None = None
        with failing(calls):
            try:
                table.append(pa.table({"id": [1]}))
            except BaseException as found:
                answer = found
        rows = _catalog(kind, tmp_path).load_table(name).scan().to_arrow()["id"].to_pylist()
        story = f"{kind}: {error} after {calls.made[-30:]}: {answer!r}, rows {rows}"
        assert rows in ([], [1]), story
        if answer is None:
            assert rows == [1], story
            assert not calls.lost_folder or _is_of_hint(calls), f"acknowledged and not durable: {story}"
        elif not isinstance(answer, CommitStateUnknown | KeyboardInterrupt):
            assert rows == [], f"made, and called a failure: {story}"
        said[type(answer).__name__] = said.get(type(answer).__name__, 0) + 1
        if len(calls.made) <= step:
            break
    else:
        raise AssertionError(f"a commit makes more than {MOST} calls")
    assert said.get("NoneType"), said


def _is_of_hint(calls: Calls) -> bool:
    """Whether the last change in the unflushed folder is a version hint, which may be lost."""
    before = [each for each in calls.made[: calls.failing] if each.startswith(("link", "replace"))]
    return "version-hint" in before[-1]


@pytest.mark.parametrize("kind", ["create", "rename"])
def test_a_folder_that_cannot_be_flushed_after_a_commit_leaves_its_outcome_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    catalog = _catalog(kind, tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), properties={"write.format.default": "avro"})
    real = os.fsync

    def fsync(descriptor: int) -> None:
        at = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if at.name == "metadata" and (at / "v2.metadata.json").exists():
            raise OSError(errno.EIO, "Input/output error")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(CommitStateUnknown, match="loss of power") as raised:
        table.append(pa.table({"id": [1]}))
    assert raised.value.visible
    monkeypatch.undo()
    assert _catalog(kind, tmp_path).load_table("db.t").scan().to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.EBADF, errno.ENOTSUP])
def test_a_file_system_that_flushes_no_folders_is_used_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(code, os.strerror(code))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    catalog = _catalog("create", tmp_path)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), properties={"write.format.default": "avro"})
    table.append(pa.table({"id": [1]}))
    assert catalog.load_table("db.t").scan().count() == 1
