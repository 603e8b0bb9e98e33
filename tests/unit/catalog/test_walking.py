"""The names of a whole catalog are listed at every depth, while other programs change it."""

from __future__ import annotations

from itertools import islice

import pytest
from icefield import Catalog
from icefield.abc import CatalogAbility, CatalogBackend, NamespaceName, Page
from icefield.errors import NoSuchNamespace
from icefield.plugins import Plugins
from icefield.storage import FileIO


class _Tree(CatalogBackend):
    """A backend of namespaces whose names are paths of one letter each, with one table each."""

    abilities = frozenset({CatalogAbility.NESTED_NAMESPACES})
    spaces: set[str]
    dropped: frozenset[str] = frozenset()
    """Namespaces that are listed and are gone when they are asked for."""

    def list_namespaces(
        self, parent: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        path = "".join(parent)
        self._require(path)
        return Page(tuple(tuple(each) for each in sorted(self.spaces) if each[:-1] == path))

    def list_tables(
        self, namespace: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        self._require("".join(namespace))
        return Page(((*namespace, "t"),))

    def _require(self, path: str) -> None:
        if path in self.dropped or path not in {"", *self.spaces}:
            raise NoSuchNamespace(path)

    create_namespace = drop_namespace = namespace_properties = update_namespace_properties = None  # type: ignore[assignment]
    table_location = strategy = None  # type: ignore[assignment]


def tree(*spaces: str, backend: type[_Tree] = _Tree, dropped: str = "") -> Catalog:
    made = backend("x", {}, FileIO(Plugins()))  # type: ignore[abstract]
    made.spaces, made.dropped = set(spaces), frozenset(dropped.split())
    return Catalog(made)


def paths(names: list[NamespaceName]) -> str:
    return " ".join("".join(each) for each in names)


def test_each_namespace_comes_before_those_inside_it() -> None:
    catalog = tree("b", "a", "ac", "ab", "abz", "bd")
    assert paths([*catalog.walk_namespaces()]) == "a ab abz ac b bd"
    assert paths([*catalog.walk_namespaces("a")]) == "ab abz ac"
    assert paths([*catalog.walk_tables()]) == "at abt abzt act bt bdt"


def test_what_is_dropped_meanwhile_is_left_out() -> None:
    catalog = tree("a", "ab", "abc", "d", dropped="ab")
    assert paths([*catalog.walk_namespaces()]) == "a ab d"
    assert paths([*catalog.walk_tables()]) == "at dt"
    with pytest.raises(NoSuchNamespace):
        next(catalog.walk_namespaces("z"))


class _Flat(_Tree):
    abilities = frozenset()

    def list_namespaces(
        self, parent: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        assert not parent, "a catalog without nested namespaces is not asked for them"
        return super().list_namespaces(parent, token=token, size=size)


def test_a_catalog_without_nested_namespaces_is_asked_once() -> None:
    assert paths([*tree("a", "b", backend=_Flat).walk_tables()]) == "at bt"


class _Circle(_Tree):
    def list_namespaces(
        self, parent: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        return Page((("a",), ("b",)))


def test_a_walk_ends_where_a_namespace_lists_itself() -> None:
    assert paths([*islice(tree(backend=_Circle).walk_namespaces(), 5)]) == "a b"
