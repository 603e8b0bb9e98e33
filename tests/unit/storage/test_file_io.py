"""The resolution of locations: schemes, maps, allow-lists, completion."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, Plugins, Provider, hookimpl
from icefield.abc import FileInfo, FileSystemAbility, PutMode
from icefield.builtin.directory import DirectoryBackend
from icefield.builtin.local import LocalFileSystem
from icefield.builtin.memory import MemoryFileSystem
from icefield.errors import BrokenPlugin, InvalidArgument, InvalidFile, LocationRefused, MissingPlugin, UnsafeCommit
from icefield.storage import FileIO, local_path


def file_io(base: str | None = None, **properties: str) -> FileIO:
    return FileIO(
        Plugins.installed(),
        {key.replace("__", ".").replace("_", "-"): value for key, value in properties.items()},
        base,
    )


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


@pytest.mark.parametrize("base", [None, "s3://x/t", "hdfs://nn/t", "/t"])
def test_a_map_to_a_path_leads_to_this_machine_whatever_the_scheme_of_the_table(base: str | None) -> None:
    io = FileIO(Plugins.installed(), {"location.map.s3://x": "/copy/x", "location.map./old": "/new"}, base)
    resolved = io.resolve("s3://x/t/f")
    assert local_path(resolved) == "/copy/x/t/f"
    assert io.resolve(resolved) == resolved
    assert local_path(io.resolve("/old/f")) == "/new/f"
    assert io.unmapped(resolved, "s3://x/t") == "s3://x/t/f"


@pytest.mark.parametrize("prefix", ["s3://x", "s3://x/"])
@pytest.mark.parametrize("target", ["/copy/x", "/copy/x/", "file:///copy/x", "file:///copy/x/"])
def test_slashes_at_the_ends_of_a_map_do_not_matter(prefix: str, target: str) -> None:
    io = FileIO(Plugins.installed(), {f"location.map.{prefix}": target})
    assert io.resolve("s3://x/t/f") == "file:///copy/x/t/f"
    assert io.resolve("s3://x") == "file:///copy/x"


@pytest.mark.parametrize("target", ["copy/x", ""])
def test_a_map_to_a_relative_path_is_refused(target: str) -> None:
    with pytest.raises(InvalidArgument, match=r"location\.map\.s3://x leads to"):
        FileIO(Plugins.installed(), {"location.map.s3://x": target})


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


def test_a_file_io_that_is_limited_later_opens_what_is_below_the_roots_as_they_are_mapped(tmp_path: Path) -> None:
    io = FileIO(Plugins.installed(), {f"location.map.file://{tmp_path}/old": f"file://{tmp_path}/new"})
    assert not io.has_roots
    io.limit_to([f"file://{tmp_path}/old", "memory://lake"])
    for each in (io, io.relative_to("memory://lake/t"), pickle.loads(pickle.dumps(io))):
        assert each.has_roots
        assert not each.exists(f"file://{tmp_path}/old/x")
        assert not each.exists("memory://lake/t/x")
        for place in (f"file://{tmp_path}/x", f"file://{tmp_path}/new-2/x", "memory://lake-2/x"):
            with pytest.raises(LocationRefused):
                each.exists(place)


@pytest.mark.parametrize("roots", [[], [""], [" memory://a"], ["memory://a,memory://b"]])
def test_a_file_io_is_limited_to_nothing_that_is_no_list_of_roots(roots: list[str]) -> None:
    io = FileIO(Plugins.installed(), {})
    with pytest.raises(InvalidArgument, match="cannot list"):
        io.limit_to(roots)
    assert not io.has_roots


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


@pytest.mark.parametrize(
    "location",
    [
        "abfss://wh?@evil:443#.core.windows.net/root/x",
        "abfss://wh#@evil/root/x",
        "s3://b\n/root/x",
        "s3://b\t/root/x",
        "s3://b%2f/root/x",
        "s3://b\\evil/root/x",
        "s3://\uff42/root/x",
        "s3:///root/x",
        "s3:b/root/x",
        "s3:/root/x",
        "\u017f3://b/root/x",
        "s3://b/root/../other",
        "s3://b/root/../root/x",
        "s3://b/other/../root/x",
        "s3://b/./root/x",
        "s3://b/root/x/..",
        "s3://b/root\\..\\other",
        "s3://b//root/x",
        "s3://b/rootless/x",
        "s3://B/root/x",
    ],
)
def test_an_allowed_root_is_compared_as_the_store_takes_the_location(location: str) -> None:
    io = file_io(location__allowed_roots="s3://b/root/, abfss://wh/root")
    with pytest.raises(LocationRefused):
        io.resolve(location)


def test_what_is_below_an_allowed_root_to_the_letter_is_opened() -> None:
    io = file_io(location__allowed_roots="s3://b/root/, s3://whole, hdfs://nn:8020/")
    for location in (
        "s3://b/root",
        "s3://b/root/x",
        "s3://b/root//x",
        "s3://b/root/%2e%2e/x",
        "s3://b/root/..x/...",
        "s3://b/root/x#y?z",
        "s3://whole/x",
        "s3://whole//x",
        "hdfs://nn:8020/x",
    ):
        assert io.resolve(location) == location


@pytest.mark.parametrize("location", ["s3://b/a/../c", "memory://m/./a", "hdfs://nn/..", "gs://b/a\\..\\c"])
def test_dot_segments_are_refused_on_every_store_but_local_disks(location: str) -> None:
    with pytest.raises(LocationRefused, match=r"'\.\.'"):
        file_io().resolve(location)


def test_what_is_no_unicode_is_refused_on_every_store_but_local_disks() -> None:
    with pytest.raises(LocationRefused, match="no Unicode"):
        file_io().resolve("s3://b/\ud800")


def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path) -> None:
    for name in ("\ud800", "a\0b"):
        for call in (LocalFileSystem().stat, file_io(location__allowed_roots=f"file://{tmp_path}").stat):
            with pytest.raises(LocationRefused):
                call(f"file://{tmp_path}/{name}")


@pytest.mark.parametrize("location", ["//evil:8020/x", "//evil/x"])
def test_a_path_does_not_become_an_authority_with_the_tables_scheme(location: str) -> None:
    with pytest.raises(LocationRefused):
        file_io("hdfs:/wh/t").resolve(location)


@pytest.mark.parametrize(
    ("prefix", "target", "location", "resolved"),
    [
        ("hdfs://nn/", "abfss://c@a.dfs.core.windows.net", "hdfs://nn/.evil.example/x", None),
        ("hdfs://nn/", "webhdfs://gateway", "hdfs://nn/.evil.example/x", "webhdfs://gateway/.evil.example/x"),
        ("hdfs://nn/wh/", "file:///copy", "hdfs://nn/wh/t/f", "file:///copy/t/f"),
        ("hdfs://nn/wh", "file:///copy/", "hdfs://nn/wh/t/f", "file:///copy/t/f"),
        ("/", "hdfs:/", "//evil/x", LocationRefused),
        ("hdfs://nn", "hdfs:/", "hdfs://nn//evil/x", LocationRefused),
        ("hdfs://nn/wh", "file:///copy", "hdfs://nn/wh/../../etc/passwd", LocationRefused),
        ("data/", "file:///wh/t/data/", "data/../../x", LocationRefused),
        ("s3a://", "s3://", "s3a://b/k", "s3://b/k"),
        ("s3a:", "s3:", "s3a://b/k", "s3://b/k"),
        ("s3a://", "s3://", "s3a://b#c/k", LocationRefused),
    ],
)
def test_a_map_leads_below_its_target_and_nowhere_else(prefix: str, target: str, location: str, resolved: Any) -> None:
    io = FileIO(Plugins.installed(), {f"location.map.{prefix}": target})
    if resolved is LocationRefused:
        with pytest.raises(LocationRefused):
            io.resolve(location)
    else:
        assert io.resolve(location) == (resolved or target + "/" + location.removeprefix(prefix))


@pytest.mark.parametrize("target", ["s3://b#c/wh", "abfss://c@host name/wh", "s3:b"])
def test_a_map_to_what_is_no_location_is_refused_at_once(target: str) -> None:
    with pytest.raises(LocationRefused):
        FileIO(Plugins.installed(), {"location.map.hdfs://nn/wh": target})


@pytest.mark.parametrize("value", ["", "/wh", "file:///wh", "hdfs:/wh", "s3:///wh"])
def test_credentials_are_for_locations_with_an_authority(value: str) -> None:
    with pytest.raises(InvalidArgument, match=r"location\.credentials-for"):
        FileIO(Plugins.installed(), {"location.credentials-for": value})


def test_an_error_about_a_location_shows_no_control_character() -> None:
    with pytest.raises(LocationRefused) as refused:
        file_io().resolve("s3://b\x1b[2J\n/x")
    assert str(refused.value).isprintable()


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
    assert (system.stat("memory://old/a").size, len([*system.list_files("memory://old")])) == (1, 2)
    system.delete_many(["memory://old/a", "memory://old/c"])
    assert [*system.list_files("memory://old")] == []
    for call in (
        lambda: system.put("memory://other/a", b"x", PutMode.CREATE),
        lambda: system.open_output("/etc/x"),
        lambda: system.rename("memory://old/a", "/etc/x"),
        lambda: system.delete_many(["/etc/x"]),
    ):
        with pytest.raises(LocationRefused):
            call()


def test_a_location_is_looked_up_once_for_each_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    io, location = file_io(), f"file://{tmp_path}/a"
    resolve, asked = FileIO._resolved, []
    monkeypatch.setattr(
        FileIO, "_resolved", lambda self, location: (asked.append(location), resolve(self, location))[1]
    )
    io.put(location, b"x", PutMode.CREATE)
    io.open_output(f"{location}b").close()
    io.open_input(location).close()
    io.stat(location)
    list(io.list_files(f"file://{tmp_path}"))
    io.delete_many([location, f"{location}b"])
    io.commit_strategy("rename", ("db", "t"), f"file://{tmp_path}")
    assert len(asked) == 8


@pytest.mark.spec("FS-11")
def test_a_strategy_is_refused_on_storage_that_cannot_keep_its_promise() -> None:
    class WithoutAbilities(LocalFileSystem):
        abilities = frozenset({FileSystemAbility.LIST})

    class OnlyCreates(LocalFileSystem):
        abilities = frozenset({FileSystemAbility.ATOMIC_CREATE})

    for kind, name, safe in ((WithoutAbilities, "rename", "sql"), (OnlyCreates, "rename", "commit='create'")):
        io = file_io()
        io._systems[LocalFileSystem, None] = kind()
        with pytest.raises(UnsafeCommit, match="lose updates") as caught:
            io.commit_strategy(name, ("db", "t"), "file:///wh/t")
        assert safe in str(caught.value)
    assert file_io().commit_strategy("rename", ("db", "t"), "file:///wh/t").location == "file:///wh/t"


def test_a_scheme_without_a_plugin_says_what_to_install() -> None:
    with pytest.raises(MissingPlugin, match=r'pip install "icefield\[s3\]"'):
        FileIO(Plugins(["icefield.builtin.hooks"])).open_input("s3://b/k")


class RowsAsAvro:
    """Provides, under the name of the manifest format, a format that cannot store manifests."""

    @hookimpl
    def icefield_file_formats(self) -> list[Provider]:
        return [Provider(("avro", "parquet"), "icefield_parquet.parquet_format:ParquetFormat")]


def test_a_format_that_is_provided_for_manifests_and_cannot_hold_them_is_refused() -> None:
    io = FileIO(Plugins(["icefield.builtin.hooks", RowsAsAvro()]), {"warehouse": "memory://no-manifests"})
    assert io.file_format("avro").name == "parquet"
    with pytest.raises(BrokenPlugin) as caught:
        io.manifest_format()
    assert str(caught.value) == (
        "icefield_parquet.parquet_format.ParquetFormat, which is provided as file format 'avro', cannot hold "
        "manifests: it is no subclass of icefield.abc.ManifestFormat"
    )
    catalog = Catalog(DirectoryBackend("no-manifests", {"warehouse": "memory://no-manifests"}, io))
    catalog.create_namespace("db")
    rows = pa.table({"id": [1]})
    table = catalog.create_table("db.t", rows.schema)
    with pytest.raises(BrokenPlugin, match="cannot hold manifests"):
        table.append(rows)
    table.refresh()
    assert table.current_snapshot() is None
    assert [name for name in MemoryFileSystem.files if name.startswith(f"{table.location()}/data/")] == []


class Remote(MemoryFileSystem):
    """A store whose abilities differ by instance, and which notes the threads that ask."""

    @property
    def abilities(self) -> frozenset[FileSystemAbility]:
        remote = {FileSystemAbility.REMOTE} if self.properties.get("far") == "yes" else set()
        return MemoryFileSystem.abilities | remote

    def stat(self, location: str) -> FileInfo:
        asking.append(threading.current_thread())
        return super().stat(location)


asking: list[threading.Thread] = []


@pytest.mark.parametrize("far", ["yes", "no"])
def test_storage_has_the_abilities_of_the_instance_and_asks_a_remote_store_at_once(
    far: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    io = FileIO(Plugins.installed(), {"far": far})
    monkeypatch.setattr(io.plugins, "file_system", lambda scheme: Remote)
    storage = io.storage("memory://t")
    assert (FileSystemAbility.REMOTE in storage.abilities) is (far == "yes")
    assert "abilities" not in vars(storage)
    asking.clear()
    storage.stat_many(["memory://t/a", "memory://t/b"])
    assert len(asking) == 2
    assert (threading.current_thread() in asking) is (far == "no")
