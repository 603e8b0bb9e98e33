"""Where a location leads: schemes, maps, allow-lists, completion."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from icefield import Plugins
from icefield.abc import FileSystemAbility, PutMode
from icefield.builtin.local import LocalFileSystem
from icefield.errors import InvalidArgument, InvalidFile, LocationRefused, MissingPlugin, UnsafeCommit
from icefield.file_io import FileIO


def file_io(base: str | None = None, **properties: str) -> FileIO:
    return FileIO(Plugins.installed(), {key.replace("__", "."): value for key, value in properties.items()}, base)


@pytest.mark.spec("FS-15")
@pytest.mark.parametrize(
    ("base", "resolved"),
    [
        ("hdfs:/wh/t", "hdfs:/wh/t/x.parquet"),
        ("hdfs://nn:8020/wh/t", "hdfs://nn:8020/wh/t/x.parquet"),
        ("/wh/t", "/wh/t/x.parquet"),
        (None, "/wh/t/x.parquet"),
    ],
)
def test_a_location_without_scheme_takes_the_tables(base: str | None, resolved: str) -> None:
    assert file_io(base).resolve("/wh/t/x.parquet") == resolved


@pytest.mark.spec("FS-15")
def test_a_relative_location_is_refused_unless_a_map_names_where_it_lies() -> None:
    with pytest.raises(LocationRefused, match=r"location\.map"):
        file_io().resolve("data/x.parquet")
    mapped = FileIO(Plugins.installed(), {"location.map.data/": "file:///wh/t/data/"})
    assert mapped.resolve("data/x.parquet") == "file:///wh/t/data/x.parquet"


@pytest.mark.spec("FS-12")
def test_the_longest_map_wins_and_only_at_a_folders_border() -> None:
    io = FileIO(
        Plugins.installed(),
        {
            "location.map.hdfs://nn/wh": "file:///a",
            "location.map.hdfs://nn/wh/t": "file:///b",
            "location.map.s3a://x": "s3://x",
        },
    )
    assert io.resolve("hdfs://nn/wh/t/f") == "file:///b/f"
    assert io.resolve("hdfs://nn/wh/tt/f") == "file:///a/tt/f"
    assert io.resolve("hdfs://nn/whale/f") == "hdfs://nn/whale/f"
    assert io.resolve("s3a://x/f") == "s3://x/f"


def test_a_scheme_that_is_not_allowed_is_refused_before_a_plugin_is_asked() -> None:
    io = FileIO(Plugins.installed(), {"location.allowed-schemes": "memory, s3"})
    assert io.resolve("memory://a/b")
    for location in ("file:///etc/passwd", "/etc/passwd", "http://host/x"):
        with pytest.raises(LocationRefused, match="allowed-schemes"):
            io.open_input(location)


@pytest.mark.parametrize(
    "properties",
    [
        {"location.alowed-schemes": "memory"},
        {"location.allowed-root": "memory://ok"},
        {"location.allowed-schemes": ""},
        {"location.allowed-roots": " , "},
    ],
    ids=str,
)
def test_a_limit_that_would_silently_allow_everything_is_refused(properties: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(properties))):
        FileIO(Plugins.installed(), properties)


def test_a_location_below_no_allowed_root_is_refused(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "f").write_text("x")
    (inside / "link").symlink_to(outside)
    io = FileIO(Plugins.installed(), {"location.allowed-roots": f"file://{inside}, memory://ok/root"})
    assert io.read(f"file://{inside}/f") == b"x"
    assert io.resolve("memory://ok/root/f")
    for location in (
        f"file://{outside}/f",
        f"file://{inside}/../out/f",
        f"file://{inside}/link/f",
        f"file://{inside}-other/f",
        "memory://ok/rootless",
        "memory://other/root/f",
        "memory://ok/root/../f",
        "/etc/passwd",
    ):
        with pytest.raises(LocationRefused):
            io.open_input(location)


@pytest.mark.parametrize("location", ["", "a\0b", "s3://" + "x" * 40_000])
def test_a_location_that_is_none_is_refused(location: str) -> None:
    with pytest.raises(LocationRefused):
        file_io().resolve(location)


def test_reading_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 100)
    assert len(file_io().read(f"file://{tmp_path}/f", limit=100)) == 100
    with pytest.raises(InvalidFile, match="more than 99 bytes"):
        file_io().read(f"file://{tmp_path}/f", limit=99)


def test_it_pickles_and_shows_no_property(tmp_path: Path) -> None:
    io = FileIO(Plugins.installed(), {"s3.secret-access-key": "hunter2"}, f"file://{tmp_path}")
    copy = pickle.loads(pickle.dumps(io))
    copy.put(f"file://{tmp_path}/f", b"x", PutMode.CREATE)
    assert copy.exists(f"file://{tmp_path}/f")
    assert not copy.exists(f"file://{tmp_path}/g")
    assert "hunter2" not in repr(io) + str(io)


@pytest.mark.spec("FS-12")
def test_storage_is_behind_the_maps_and_allow_lists(tmp_path: Path) -> None:
    properties = {"location.map.memory://old": f"file://{tmp_path}/new", "location.allowed-roots": f"file://{tmp_path}"}
    system = pickle.loads(pickle.dumps(FileIO(Plugins.installed(), properties).storage("memory://old/t")))
    assert system.abilities == LocalFileSystem.abilities
    system.put("memory://old/a", b"x", PutMode.CREATE)
    with system.open_output("memory://old/b") as sink:
        sink.write(b"xy")
    system.rename("memory://old/b", "memory://old/c")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["a", "c"]
    assert system.open_input("memory://old/c").read() == b"xy"
    assert (system.stat("memory://old/a").size, len([*system.list("memory://old")])) == (1, 2)
    system.delete_many(["memory://old/a", "memory://old/c"])
    assert [*system.list("memory://old")] == []
    for call in (
        lambda: system.put("memory://other/a", b"x", PutMode.CREATE),
        lambda: system.open_output("/etc/x"),
        lambda: system.rename("memory://old/a", "/etc/x"),
        lambda: system.delete_many(["/etc/x"]),
    ):
        with pytest.raises(LocationRefused):
            call()


@pytest.mark.spec("FS-11")
def test_a_strategy_is_refused_on_storage_that_cannot_keep_its_promise() -> None:
    class WithoutAbilities(LocalFileSystem):
        abilities = frozenset({FileSystemAbility.LIST})

    class OnlyCreates(LocalFileSystem):
        abilities = frozenset({FileSystemAbility.ATOMIC_CREATE})

    for kind, name, safe in ((WithoutAbilities, "rename", "sql"), (OnlyCreates, "rename", "commit='create'")):
        io = file_io()
        io._systems[LocalFileSystem] = kind()
        with pytest.raises(UnsafeCommit, match="lose updates") as caught:
            io.commit_strategy(name, ("db", "t"), "file:///wh/t")
        assert safe in str(caught.value)
    assert file_io().commit_strategy("rename", ("db", "t"), "file:///wh/t").location == "file:///wh/t"


def test_a_scheme_without_a_plugin_says_what_to_install() -> None:
    with pytest.raises(MissingPlugin, match=r'pip install "icefield\[s3\]"'):
        FileIO(Plugins(["icefield.builtin.hooks"])).open_input("s3://b/k")
