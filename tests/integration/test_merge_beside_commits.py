"""A merge of a branch over many tables takes whole commits, even one of several tables that comes in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from icefield import Catalog, load_catalog
from icefield.catalog import transaction as transactions
from icefield.errors import InvalidArgument
from icefield_maintenance import CatalogBranches
from icefield_rest_server import app
from rest_served import served
from tables import ids, new_table, rows

MOST_READINGS = 12
"""More than a merge of three tables makes, with an attempt that lost."""

pytestmark = pytest.mark.parametrize("kind", ["sql", "rest"])


@pytest.fixture
def catalog(kind: str, tmp_path: Path) -> Iterator[Catalog]:
    place = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": tmp_path.as_uri()}
    with load_catalog("c", type="sql", **place, **{"file.sync": "false"}) as made:
        if kind == "sql":
            yield made
            return
        with served(app(made)) as uri, load_catalog("c", type="rest", uri=uri) as client:
            yield client


def made_tables(catalog: Catalog, number: int) -> tuple[str, ...]:
    """Tables with the row 1 and a branch ``work``, in a namespace of their own."""
    names = tuple(f"n{number}.{name}" for name in "abc")
    catalog.create_namespace(f"n{number}")
    for name in names:
        new_table(catalog=catalog, name=name).append(rows([1]))
    CatalogBranches(catalog, names).create("work", names)
    return names


def moments(catalog: Catalog) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The number of each reading before which a rival may commit, with tables of its own."""
    for at in range(1, MOST_READINGS):
        yield at, made_tables(catalog, at)
    raise AssertionError("the change never ended")


def disturbed(monkeypatch: pytest.MonkeyPatch, at: int, rival: Callable[[], object], run: Callable[[], object]) -> bool:
    """Run with a rival that commits before the reading of that number; whether there was such a reading."""
    load, readings = transactions.load_table, [0]

    def load_table(handle: Any, held: Any = None) -> Any:
        readings[0] += 1
        if readings[0] == at:
            rival()
        return load(handle, held)

    with monkeypatch.context() as patch:
        patch.setattr(transactions, "load_table", load_table)
        run()
    return readings[0] >= at


def append(catalog: Catalog, number: int, branch: str, *names: str) -> None:
    """Append a row to a branch of some tables in one commit."""
    with catalog.transaction() as change:
        for name in names:
            change.table(name).append(rows([number]), branch=branch)


def merge_if_possible(catalog: Catalog, names: tuple[str, ...]) -> None:
    with suppress(InvalidArgument):
        CatalogBranches(catalog, names).merge("work")


@pytest.mark.parametrize("ahead", [(0,), (2,), (0, 2), (0, 1, 2)])
def test_a_commit_of_several_tables_during_a_merge_is_merged_whole(
    catalog: Catalog, ahead: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rival writes to the branch of two tables, before each reading of the merge in turn."""
    for at, names in moments(catalog):
        append(catalog, 2, "work", *(names[number] for number in ahead))
        rival = partial(append, catalog, 7, "work", names[0], names[2])
        was = disturbed(monkeypatch, at, rival, partial(CatalogBranches(catalog, names).merge, "work"))
        found = [ids(catalog.load_table(name)) for name in names]
        assert (7 in found[0]) is (7 in found[2]), (at, found)
        assert all(2 in found[number] for number in ahead)
        if not was:
            return


def test_a_commit_to_a_table_that_is_behind_is_not_merged_in_half(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second table of the rival's commit cannot be merged any more: then neither can the first."""
    for at, names in moments(catalog):
        append(catalog, 2, "work", names[0])
        append(catalog, 9, "main", names[2])
        rival = partial(append, catalog, 7, "work", names[0], names[2])
        was = disturbed(monkeypatch, at, rival, partial(merge_if_possible, catalog, names))
        found = [ids(catalog.load_table(name)) for name in names]
        assert found[2] == [1, 9]
        assert 7 not in found[0], (at, found)
        if not was:
            assert found[0] == [1, 2]
            return


def test_a_commit_to_main_of_a_table_whose_branch_has_no_change_hinders_no_merge(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at, names in moments(catalog):
        append(catalog, 2, "work", names[0])
        rival = partial(append, catalog, 9, "main", names[2])
        was = disturbed(monkeypatch, at, rival, partial(CatalogBranches(catalog, names).merge, "work"))
        assert ids(catalog.load_table(names[0])) == [1, 2]
        if not was:
            return


def test_a_branch_begins_at_one_moment_of_all_tables(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rival writes to two tables in one commit while the branch is created: it has both or neither."""
    for at, names in moments(catalog):
        rival = partial(append, catalog, 7, "main", names[0], names[2])
        was = disturbed(monkeypatch, at, rival, partial(CatalogBranches(catalog, names).create, "new", names))
        found = [ids(catalog.load_table(name), ref="new") for name in names]
        assert (7 in found[0]) is (7 in found[2]), (at, found)
        if not was:
            return


def test_a_merge_returns_the_tables_that_it_moved(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    names = made_tables(catalog, 1)
    append(catalog, 2, "work", names[0])
    moved: list[tuple[str, ...]] = []
    rival = partial(append, catalog, 7, "work", names[1])
    disturbed(monkeypatch, 1, rival, lambda: moved.append(CatalogBranches(catalog, names).merge("work")))
    assert moved == [names[:2]]
