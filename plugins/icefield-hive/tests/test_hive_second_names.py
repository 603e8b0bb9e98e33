"""Tables of a Hive Metastore in the folders of others: the metastore is asked for them by their metadata files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from icefield import Catalog, load_catalog
from icefield.errors import InvalidArgument, LocationInUse, LocationWarning
from icefield_hive import strategy
from icefield_hive.client import Metastore
from icefield_hive.messages import Method
from servers.hive import drop_databases

SCHEMA = pa.schema([("n", pa.int64())])
FREES = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}


def test_a_second_name_in_another_database_keeps_its_files(hive: str, tmp_path: Path) -> None:
    with load_catalog("test", type="hive", uri=hive, warehouse=f"file://{tmp_path}/warehouse") as catalog:
        for each in ("first_names", "second_names"):
            catalog.create_namespace(each)
        table = catalog.create_table("first_names.t", SCHEMA, properties=FREES)
        table.append(pa.table({"n": [1]}, schema=SCHEMA))
        with pytest.warns(LocationWarning, match=r"first_names\.t.*registered twice"):
            catalog.register_table("second_names.t", table.metadata_location)
        for value in (2, 3, 4):
            table.append(pa.table({"n": [value]}, schema=SCHEMA))
        with pytest.raises(InvalidArgument, match=r"second_names\.t may need"):
            table.maintenance.expire_snapshots(2**60, retain_last=1)
        assert catalog.load_table("second_names.t").scan().to_arrow()["n"].to_pylist() == [1]
        catalog.drop_table("second_names.t")
        assert len(table.maintenance.expire_snapshots(2**60, retain_last=1).snapshot_ids) == 3


NAMES = ["plain", "x_y", "100%", "a b'c", 'quo"te', "back\\slash", "ünï", "\U0001f9ca", "dots.and.more", "(a|b)*", "$x"]


@pytest.fixture
def catalog(hive: str, tmp_path: Path) -> Iterator[Catalog]:
    drop_databases(hive)
    with load_catalog("test", type="hive", uri=hive, warehouse=f"file://{tmp_path}/warehouse") as made:
        for each in ("one", "two"):
            made.create_namespace(each)
        yield made


@contextmanager
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the calls that the metastore gets."""
    made: list[str] = []
    real = Metastore.call

    def call(self: Metastore, method: Method, *values: Any) -> Any:
        made.append(method.name)
        return real(self, method, *values)

    with monkeypatch.context() as patched:
        patched.setattr(Metastore, "call", call)
        yield made


def below(catalog: Catalog, folder: str) -> dict[str, str]:
    """Without the tables of other tests, in the database ``default`` of the one metastore."""
    found = catalog.backend.strategy(("one", "new"), folder).tables_in(folder)
    return {name: place for name, place in found if not name.startswith("default.")}


@pytest.mark.parametrize("name", NAMES)
def test_tables_are_found_by_their_folders_whatever_these_are_called(
    catalog: Catalog, tmp_path: Path, name: str
) -> None:
    place = f"file://{tmp_path}/lake/{name}"
    found = catalog.create_table("two.t", SCHEMA, location=f"{place}/t").metadata_location
    assert below(catalog, f"{place}/t/metadata") == {"two.t": found}
    assert below(catalog, place) == {"two.t": found}
    with pytest.raises(LocationInUse, match=r"two\.t"):
        catalog.create_table("one.t", SCHEMA, location=place)


def test_records_of_no_other_tables_are_asked_for(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [catalog.create_table(name, SCHEMA).location() for name in ("one.a", "one.b", "two.c", "two.d")]
    by_filter = ["get_table_names_by_filter"] * 3  # there is the database `default`, too
    with calls(monkeypatch) as made:
        assert below(catalog, f"file://{tmp_path}/lake/of_nobody/metadata") == {}
        assert made == ["get_all_databases", *by_filter]
    with calls(monkeypatch) as made:
        assert [*below(catalog, f"{places[2]}/metadata")] == ["two.c"]
        assert sorted(made) == sorted(["get_all_databases", *by_filter, "get_table_objects_by_name_req"])


def test_tables_of_a_service_that_knows_no_filters_are_found_among_all(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"file://{tmp_path}/lake/t"
    catalog.create_table("two.t", SCHEMA, location=place)
    monkeypatch.setattr(strategy, "_FILTER", "no filter {}")
    with calls(monkeypatch) as made:
        assert [*below(catalog, f"{place}/metadata")] == ["two.t"]
    assert "get_all_tables" in made
