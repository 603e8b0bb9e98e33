"""Decoded manifests on disk: found by another process, private, bounded, and never a reason to fail."""

import errno
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import icefield
import pyarrow as pa
import pytest
from icefield.errors import InvalidArgument
from icefield.manifest import ManifestEntries, ManifestFile, ManifestReader, ManifestRequest, clear_caches, disk_cache
from icefield.manifest import schemas as f
from icefield.manifest.disk_cache import CACHE_FOLDER, CACHE_FOLDER_BYTES
from icefield.plugins import Plugins
from icefield.types import StructType
from planned_tables import CountingIO, PlannedTable

BOUNDS = frozenset({1})
REQUEST = ManifestRequest(
    statistics={f.LOWER_BOUNDS: BOUNDS, f.UPPER_BOUNDS: BOUNDS, f.NAN_VALUE_COUNTS: BOUNDS},
    where_unbounded={f.NULL_VALUE_COUNTS: BOUNDS},
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "manifests"


def table_with(folder: Path, **properties: str) -> PlannedTable:
    return PlannedTable(io=CountingIO(Plugins.installed(), {CACHE_FOLDER: str(folder), **properties}))


def written(made: PlannedTable) -> ManifestFile:
    # The size decides whether a file on disk is worthwhile.
    files = [made.file(bounds={"id": (i, i + 9)}, nulls={"name": i % 3}) for i in range(1000)]
    return made.write(files).assigned(1000, 1)


def read_anew(made: PlannedTable, manifest: ManifestFile, request: ManifestRequest = REQUEST) -> ManifestEntries:
    """Read as a new process would; ``opened`` tells whether the store was asked."""
    clear_caches()
    made.io.opened.clear()  # type: ignore[attr-defined]
    return ManifestReader(made.io).read(manifest, StructType(), request)


def assert_same(found: ManifestEntries, expected: ManifestEntries) -> None:
    assert len(found) == len(expected)
    assert found.read == expected.read
    assert found.columns.keys() == expected.columns.keys()
    for number, column in expected.columns.items():
        assert found.columns[number].equals(column), number
    for key, array in expected.statistics.items():
        assert (found.statistics[key] is None) == (array is None)
        assert array is None or found.statistics[key].equals(array)


def opened(made: PlannedTable) -> list[str]:
    return made.io.opened  # type: ignore[attr-defined,no-any-return]


def test_a_manifest_is_decoded_once_for_all_processes(folder: Path) -> None:
    made = table_with(folder)
    manifest = written(made)
    first = read_anew(made, manifest)
    assert opened(made) == [manifest.manifest_path]
    again = read_anew(made, manifest)
    assert opened(made) == []
    assert_same(again, first)
    again.columns[f.FILE_PATH].validate(full=True)
    # Columns serve any filter; the statistics of another field are read from the manifest.
    other = ManifestRequest(statistics={f.LOWER_BOUNDS: frozenset({2})})
    assert read_anew(made, manifest, other).statistic(f.LOWER_BOUNDS, 2) is None
    assert opened(made) == [manifest.manifest_path]
    read_anew(made, manifest, ManifestRequest())
    assert opened(made) == []


def test_other_sequence_numbers_properties_and_lengths_are_other_manifests(folder: Path) -> None:
    made = table_with(folder)
    manifest = written(made)
    read_anew(made, manifest)
    for other in (
        replace(manifest, sequence_number=2),
        replace(manifest, manifest_length=manifest.manifest_length - 1),
    ):
        read_anew(made, other)
        assert opened(made) == [manifest.manifest_path]
    made.io = CountingIO(Plugins.installed(), {**made.io.properties, "some.secret": "of another user"})
    read_anew(made, manifest)
    assert opened(made) == [manifest.manifest_path]


def test_an_encrypted_or_small_manifest_is_never_on_disk(folder: Path) -> None:
    made = table_with(folder)
    read_anew(made, replace(written(made), key_metadata=b"key"))
    read_anew(made, made.write([made.file()]).assigned(1000, 1))
    assert not list(folder.iterdir())


def test_a_plain_manifest_of_a_table_that_is_encrypted_now_is_never_on_disk(folder: Path) -> None:
    made = table_with(folder)
    manifest = written(made)
    made.io.key_length = 16
    read_anew(made, manifest)
    assert not folder.exists() or not list(folder.iterdir())


def test_nothing_is_on_disk_without_a_cache(folder: Path) -> None:
    made = table_with(folder, **{"io.manifest.cache-enabled": "false"})
    read_anew(made, written(made))
    assert not list(folder.iterdir())


def test_the_folder_and_its_files_are_private(folder: Path) -> None:
    made = table_with(folder)
    read_anew(made, written(made))
    assert folder.stat().st_mode & 0o777 == 0o700
    files = list(folder.iterdir())
    assert files
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)


@pytest.mark.parametrize("prepare", ["open", "link", "file"])
def test_a_folder_of_others_is_not_used_and_a_warning_says_so(folder: Path, tmp_path: Path, prepare: str) -> None:
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    if prepare == "open":
        folder.mkdir()
        folder.chmod(0o755)
    elif prepare == "link":
        folder.symlink_to(target)
    else:
        folder.write_text("no folder")
    made = table_with(folder)
    manifest = written(made)
    with pytest.warns(UserWarning, match="no manifests are kept in"):
        read_anew(made, manifest)
    read_anew(made, manifest)
    assert opened(made) == [manifest.manifest_path]
    assert not list(target.iterdir())


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _flipped(data: bytes) -> bytes:
    place = random.Random(7).randrange(30, len(data))
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize("damage", [_cut, _flipped, lambda _: b"", lambda data: data + b"x", lambda data: b"x" + data])
def test_a_damaged_file_is_removed_and_the_manifest_read(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    made = table_with(folder)
    manifest = written(made)
    first = read_anew(made, manifest)
    for file in folder.iterdir():
        file.write_bytes(damage(file.read_bytes()))
    assert_same(read_anew(made, manifest), first)
    assert opened(made) == [manifest.manifest_path]
    read_anew(made, manifest)
    assert opened(made) == [], "the files were written anew"


def test_files_of_a_folder_on_a_read_only_disk_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = table_with(folder)
    manifest = written(made)
    read_anew(made, manifest)
    for file in folder.iterdir():
        os.utime(file, (0, 0))

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "read-only")

    for name in ("utime", "rename", "unlink"):
        monkeypatch.setattr(os, name, refuse)
    read_anew(made, manifest)
    assert opened(made) == []


def test_a_link_in_the_folder_is_not_followed(folder: Path, tmp_path: Path) -> None:
    made = table_with(folder)
    manifest = written(made)
    read_anew(made, manifest)
    for number, file in enumerate(folder.iterdir()):
        file.symlink_to(file.rename(tmp_path / str(number)))
    read_anew(made, manifest)
    assert opened(made) == [manifest.manifest_path]


def test_the_folder_is_bounded_and_may_be_deleted_at_any_moment(folder: Path) -> None:
    made = table_with(folder, **{CACHE_FOLDER_BYTES: "400000"})
    manifests = [written(made) for _ in range(12)]
    for manifest in manifests:
        read_anew(made, manifest)
        assert sum(file.stat().st_size for file in folder.iterdir()) <= 500_000
    read_anew(made, manifests[-1])
    assert opened(made) == [], "the newest files stay"
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    assert len(read_anew(made, manifests[0])) == 1000


def test_a_size_must_be_a_positive_number(folder: Path) -> None:
    for size in ("0", "-1", "much"):
        with pytest.raises(InvalidArgument, match="cache-folder-bytes"):
            ManifestReader(table_with(folder, **{CACHE_FOLDER_BYTES: size}).io)


_READER = """
import sys, icefield
table = icefield.load_catalog("c", type="directory", warehouse=sys.argv[1], **{"io.manifest.cache-folder": sys.argv[2]})
print(table.load_table("db.t").scan("id = 41").plan_arrow().num_rows)
"""


@pytest.mark.slow
def test_processes_share_the_folder_while_its_files_vanish(folder: Path, tmp_path: Path) -> None:
    warehouse = f"file://{tmp_path}/warehouse"
    catalog = icefield.load_catalog("c", type="directory", warehouse=warehouse)
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    appending = table.update_snapshot().fast_append()
    made = PlannedTable(location=table.location())
    for i in range(1000):
        appending.append_file(made.file(bounds={"id": (10 * i, 10 * i + 9)}))
    appending.commit()
    command = [sys.executable, "-c", _READER, warehouse, str(folder)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    while any(each.poll() is None for each in running):
        for file in folder.iterdir() if folder.exists() else ():
            file.unlink(missing_ok=True)
    assert [each.communicate()[0].strip() for each in running] == ["1"] * 3
    assert all(each.returncode == 0 for each in running)


def test_a_file_that_has_the_name_of_another_is_removed(folder: Path) -> None:
    made = table_with(folder)
    manifests = [written(made), written(made)]
    names = []
    folder.mkdir(mode=0o700)
    for manifest in manifests:
        before = set(folder.iterdir())
        read_anew(made, manifest, ManifestRequest())
        names += set(folder.iterdir()) - before
    first, second = names
    second.write_bytes(first.read_bytes())
    found = read_anew(made, manifests[1], ManifestRequest())
    assert opened(made) == [manifests[1].manifest_path]
    assert found.manifest == manifests[1]
    assert next(found.data_files()).file_path != next(read_anew(made, manifests[0]).data_files()).file_path


def test_other_files_in_the_folder_stay(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    others = [folder / name for name in ("thesis.txt", "0123456789abcdef0123456789abcdef", "a.manifest", "x.tmp")]
    for other in others:
        other.write_bytes(bytes(500_000))
        os.utime(other, (0, 0))
    made = table_with(folder, **{CACHE_FOLDER_BYTES: "400000"})
    manifests = [written(made) for _ in range(12)]
    for manifest in manifests:
        read_anew(made, manifest)
    assert all(other.exists() for other in others)
    read_anew(made, manifests[-1])
    assert opened(made) == [], "others do not count"


def test_a_temporary_file_of_a_killed_process_is_deleted_in_time(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    left = folder / f"{'0' * 32}.manifest.tmp"
    left.write_bytes(bytes(500_000))
    os.utime(left, (0, 0))
    made = table_with(folder, **{CACHE_FOLDER_BYTES: "400000"})
    read_anew(made, written(made))
    assert not left.exists()


def _vast(file: Path) -> None:
    os.truncate(file, 1 << 40)


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _of_another_user(file: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give files away")
    os.chown(file, 65_534, 65_534)


@pytest.mark.parametrize("change", [_vast, _folder, _pipe, _of_another_user])
def test_a_thing_that_no_cache_wrote_is_not_read(folder: Path, change: Callable[[Path], None]) -> None:
    made = table_with(folder)
    manifest = written(made)
    first = read_anew(made, manifest)
    for file in folder.iterdir():
        change(file)
    held = len(os.listdir("/dev/fd"))
    assert_same(read_anew(made, manifest), first)
    assert opened(made) == [manifest.manifest_path]
    assert len(os.listdir("/dev/fd")) <= held


def _stream(*arrays: pa.Array, metadata: dict[str, str] | None = None, batches: int = 1) -> bytes:
    names = [str(number) for number in range(len(arrays))]
    batch = pa.record_batch(list(arrays), names).replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for _ in range(batches):
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


_BAD_OFFSETS = pa.Array.from_buffers(
    pa.string(), 1000, [None, pa.array([0, *[2**31 - 1] * 999, 4], pa.int32()).buffers()[1], pa.py_buffer(b"text")]
)


@pytest.mark.parametrize(
    "stream",
    [
        _stream(pa.array([1]), batches=0),
        _stream(pa.array([1])),
        _stream(pa.array([1]), metadata={"rows": str(10**30), "read": "102"}),
        _stream(_BAD_OFFSETS, metadata={"rows": "1000", "read": "0"}),
        b"",
        b"\xff" * 100,
    ],
)
def test_a_file_with_a_right_checksum_and_wrong_contents_is_removed(folder: Path, stream: bytes) -> None:
    made = table_with(folder)
    manifest = written(made)
    first = read_anew(made, manifest)
    for file in folder.iterdir():
        file.write_bytes(disk_cache._LAYOUT + disk_cache._checksum(file.name, stream) + stream)
    assert_same(read_anew(made, manifest), first)
    assert opened(made) == [manifest.manifest_path]


def test_a_manifest_beyond_a_quarter_of_the_bound_displaces_no_other(folder: Path) -> None:
    made = table_with(folder)
    small, large = written(made), made.write([made.file() for _ in range(20_000)]).assigned(1000, 1)
    read_anew(made, small)
    size = sum(file.stat().st_size for file in folder.iterdir())
    made = table_with(folder, **{CACHE_FOLDER_BYTES: str(5 * size)})
    made.io.properties[CACHE_FOLDER_BYTES] = str(5 * size)
    for manifest in (small, large, small):
        read_anew(made, manifest)
    assert opened(made) == []


@pytest.mark.parametrize("folder_name", ["~nobody-of-that-name/x", "with\0zero"])
def test_a_name_that_is_no_folder_is_not_used_and_a_warning_says_so(
    folder_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~nobody-of-that-name").write_text("a file")
    with pytest.warns(UserWarning, match="no manifests are kept in"):
        ManifestReader(table_with(Path("x"), **{CACHE_FOLDER: folder_name}).io)
