"""Maps that swap two places, and maps into their own prefix: a location is mapped once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from icefield.builtin.memory import MemoryFileSystem

KINDS = ("create", "rename", "sql")


@pytest.fixture
def places() -> Iterator[tuple[str, str]]:
    name = uuid4().hex
    yield f"memory://{name}/a", f"memory://{name}/b"
    for location in [key for key in MemoryFileSystem.files if key.startswith(f"memory://{name}/")]:
        del MemoryFileSystem.files[location]


def opened(kind: str, folder: Path, place: str, **maps: str) -> Catalog:
    properties = {f"location.map.{key}": value for key, value in maps.items()}
    if kind == "sql":
        uri = f"sqlite:///{folder}/{place[-1]}.db"
        return load_catalog("x", type="sql", uri=uri, warehouse=place, **properties)
    return load_catalog("x", type="directory", warehouse=place, commit=kind, **properties)


def ids(catalog: Catalog) -> list[int]:
    return sorted(catalog.load_table("db.t").scan().to_arrow().column("id").to_pylist())


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64())})


def move(old: str, new: str) -> dict[str, tuple[bytes, int]]:
    """Remove the files below a location, and return them under another location."""
    names = [name for name in MemoryFileSystem.files if name.startswith(f"{old}/")]
    return {new + name[len(old) :]: MemoryFileSystem.files.pop(name) for name in names}


def below(place: str) -> set[str]:
    return {name for name in MemoryFileSystem.files if name.startswith(f"{place}/")}


@pytest.mark.spec("FS-12")
@pytest.mark.parametrize("kind", KINDS)
def test_two_places_that_were_swapped_are_read_and_changed_through_a_map(
    kind: str, tmp_path: Path, places: tuple[str, str]
) -> None:
    a, b = places
    for place, number in ((a, 1), (b, 2)):
        catalog = opened(kind, tmp_path, place)
        catalog.create_namespace("db", {"owner": place})
        catalog.create_table("db.t", rows().schema).append(rows(number))
    MemoryFileSystem.files.update(move(a, b) | move(b, a))
    maps = {a: b, b: a}
    for place, other, number in ((a, b, 1), (b, a, 2)):
        catalog = opened(kind, tmp_path, place, **maps)
        assert ids(catalog) == [number]
        before = below(place)
        table = catalog.load_table("db.t")
        table.append(rows(number + 10))
        table.delete(f"id = {number}")
        assert ids(catalog) == [number + 10]
        assert below(place) == before, f"written where {place} no longer is, and not at {other}"
        named = [entry.metadata_file for entry in table.refresh().metadata.metadata_log]
        assert all(location.startswith(f"{place}/") for location in named), named
        assert catalog.list_tables("db") == [("db", "t")]
        assert catalog.load_namespace_properties("db")["owner"] == place
    catalog = opened(kind, tmp_path, a, **maps)
    kept = below(a)
    catalog.drop_table("db.t", purge=True)
    assert not catalog.table_exists("db.t")
    assert below(a) == kept
    assert not [name for name in below(b) if "/db/t/" in name]
    assert ids(opened(kind, tmp_path, b, **maps)) == [12]


@pytest.mark.parametrize("kind", KINDS)
def test_a_map_below_its_own_prefix_leads_there_once(kind: str, tmp_path: Path, places: tuple[str, str]) -> None:
    place, _ = places
    catalog = opened(kind, tmp_path, place)
    catalog.create_namespace("db")
    catalog.create_table("db.t", rows().schema).append(rows(1))
    MemoryFileSystem.files.update(move(place, f"{place}/copy"))
    catalog = opened(kind, tmp_path, place, **{place: f"{place}/copy"})
    assert ids(catalog) == [1]
    catalog.load_table("db.t").append(rows(2))
    assert ids(catalog) == [1, 2]
    assert below(place) == below(f"{place}/copy")
    catalog.drop_table("db.t", purge=True)
    assert not [name for name in below(place) if "/db/t/" in name]


def test_a_folder_with_a_map_of_its_own_is_listed_where_it_lies(places: tuple[str, str]) -> None:
    a, b = places
    io = load_catalog("x", type="directory", warehouse=a, **{f"location.map.{a}/in": b}).io
    for name in (f"{a}/out", f"{a}/in/hidden", f"{b}/seen"):
        MemoryFileSystem.files[name] = b"x", 0
    assert [info.location for info in io.list_files(a)] == [f"{a}/out"]
    assert [info.location for info in io.list_files(f"{a}/in")] == [f"{a}/in/seen"]
    assert io.stat(f"{a}/in/seen").location == f"{a}/in/seen"
    found = io.storage(a).stat_many([f"{a}/in/seen", f"{a}/none", f"{a}/out"])
    assert [info and info.location for info in found] == [f"{a}/in/seen", None, f"{a}/out"]
    io.delete_many(info.location for info in io.list_files(f"{a}/in"))
    assert below(b) == set()
    assert f"{a}/in/hidden" in below(a)
