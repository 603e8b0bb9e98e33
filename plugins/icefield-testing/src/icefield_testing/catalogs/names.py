"""Checks of names, values and listings: names and values are kept to the letter, and listings leave no name out."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from icefield import Catalog
from icefield.abc import CatalogAbility, CatalogBackend, Committed, Page, ViewCatalog
from icefield.errors import IcefieldError, NamespaceExists, NoSuchNamespace, TableExists

from icefield_testing.catalogs.views import ViewChecks
from icefield_testing.names import COMPOSED, DECOMPOSED, SPELLINGS, VALUES

Name = tuple[str, ...]

_KEYS = ("key", "KEY", " key", "ke%20y", "ke y", "ke=y", "ke.y", COMPOSED, DECOMPOSED)


class NameChecks(ViewChecks):
    """Checks with the names and values of ``icefield_testing.names``."""

    def test_a_name_is_kept_to_the_letter_or_refused(self, backend: CatalogBackend) -> None:
        """If this fails, a name is trimmed, decoded, folded or brought into another Unicode form, so that two names
        stand for one thing; or it is accepted and not listed: keep each name to the letter, refuse it with
        ``InvalidArgument``, or declare ``CaseInsensitiveCatalog``."""
        backend.create_namespace(("a",), {})
        self._keeps(backend, (), self._made_namespace, lambda: self.namespaces(backend))
        self._keeps(backend, ("a",), self._made_table, lambda: backend.list_tables(("a",)).items)

    def _keeps(
        self,
        backend: CatalogBackend,
        space: Name,
        make: Callable[[CatalogBackend, Name], str],
        listed: Callable[[], tuple[Name, ...]],
    ) -> None:
        """Make a namespace or table of each name, and check that each is a separate one and is listed by its name."""
        kept_name = Catalog(backend).kept_name
        before = {*listed()}
        made: dict[str, dict[Name, str]] = {kind: {} for kind in SPELLINGS}
        refused: dict[Name, str] = {}
        for kind, spellings in SPELLINGS.items():
            for name in ((*space, each) for each in spellings):
                kept = kept_name(name)
                if kept in made[kind]:  # the catalog says that it is another spelling of the same name
                    continue
                try:
                    made[kind][kept] = make(backend, name)
                except (NamespaceExists, TableExists) as error:
                    others = ", ".join(ascii(each[-1]) for each in made[kind])
                    raise AssertionError(
                        f"{name[-1]!a} is taken by {others}: names that differ in {kind} are one"
                    ) from error
                except IcefieldError:
                    refused[kept] = kind
        found = {*listed()} - before
        left = [name[-1] for name in refused if name in found]
        assert not left, f"{left!a} are refused, and are there"
        for kind, names in made.items():
            rest = {name for each, those in made.items() if each != kind for name in those}
            changed = f"{kind} of a name is not kept: made {[*names]!a}, and listed {sorted(found - rest)!a}"
            assert found >= names.keys(), changed
            for name, identity in names.items():
                assert self._identity(backend, name) == identity, f"{name[-1]!a} is another than was made: {changed}"
        more = found - {name for names in made.values() for name in names}
        assert not more, f"names are listed that nothing has: {sorted(more)!a}"

    def _made_namespace(self, backend: CatalogBackend, name: Name) -> str:
        backend.create_namespace(name, {"is": ascii(name[0])})
        return ascii(name[0])

    def _made_table(self, backend: CatalogBackend, name: Name) -> str:
        proposal = self._table_creation(backend, name)
        made = backend.strategy(name, proposal.metadata.location).commit(None, proposal)
        if not isinstance(made, Committed):
            raise TableExists("another came first", table=name)
        return str((made.metadata or proposal.metadata).table_uuid)

    def _identity(self, backend: CatalogBackend, name: Name) -> str:
        if len(name) == 1:
            return backend.namespace_properties(name).get("is", "nothing")
        return str(self._metadata_of(backend, name).table_uuid)

    def test_a_property_is_kept_to_the_letter(self, backend: CatalogBackend) -> None:
        """If this fails, a value that is empty, blank or no ASCII, or a key in another case, is dropped or changed:
        keep both as they are, or refuse the change as a whole. Or ``create_namespace`` keeps the mapping of the caller,
        or ``namespace_properties`` returns the mapping of the catalog: copy both."""
        given = dict(VALUES)
        backend.create_namespace(("created",), given)
        given["empty"] = "changed by the caller"
        backend.namespace_properties(("created",))["blank"] = "changed by a reader"
        backend.create_namespace(("updated",), {})
        backend.update_namespace_properties(("updated",), VALUES, frozenset())
        for space in ("created", "updated"):
            self._same(VALUES, self.properties(backend, (space,)), space)
        keys = {key: str(number) for number, key in enumerate(_KEYS)}
        try:
            backend.create_namespace(("keys",), keys)
        except IcefieldError:
            assert ("keys",) not in self.namespaces(backend), "properties are refused, and the namespace is there"
            return
        self._same(keys, self.properties(backend, ("keys",)), "keys")
        backend.update_namespace_properties(("keys",), {}, frozenset(_KEYS[:1]))
        self._same({key: keys[key] for key in _KEYS[1:]}, self.properties(backend, ("keys",)), "keys")

    def _same(self, given: Mapping[str, str], found: dict[str, str], space: str) -> None:
        wrong = [
            f"{key!a} is {found[key]!a}, not {value!a}" if key in found else f"{key!a} with {value!a} is gone"
            for key, value in given.items()
            if found.get(key) != value
        ]
        assert not wrong, f"{len(wrong)} of {len(given)} properties of {space} are changed: {'; '.join(wrong)}"
        more = found.keys() - given.keys()
        assert not more, f"{space} has properties that nobody set, or that were removed: {sorted(more)!a}"

    def test_a_nested_namespace_has_parents_or_is_refused(self, backend: CatalogBackend) -> None:
        """If this fails, a namespace is created below one that is not there, and no listing leads to it; or its parent
        is dropped: make the parents, or raise ``NoSuchNamespace``; ``drop_namespace`` raises ``NamespaceNotEmpty``."""
        if CatalogAbility.NESTED_NAMESPACES not in backend.abilities:
            pytest.skip("the backend declares no nested namespaces")
        try:
            backend.create_namespace(("a", "b"), {"deep": "1"})
        except NoSuchNamespace:
            assert self.namespaces(backend) == (), "refused, and its parent is there"
            backend.create_namespace(("a",), {})
            backend.create_namespace(("a", "b"), {"deep": "1"})
        assert self.namespaces(backend) == (("a",),), "no listing leads to the namespace a.b: its parent is not listed"
        assert backend.list_namespaces(("a",)).items == (("a", "b"),)
        assert self.properties(backend, ("a", "b")) == {"deep": "1"}
        assert "deep" not in backend.namespace_properties(("a",)), "a parent has the properties of its child"
        backend.create_namespace(("ab",), {})
        with pytest.raises(IcefieldError):
            backend.drop_namespace(("a",))
        assert self.properties(backend, ("a", "b")) == {"deep": "1"}
        backend.drop_namespace(("ab",))

    def test_a_dot_in_a_level_does_not_end_the_level(self, backend: CatalogBackend) -> None:
        """If this fails, the levels of a name are joined by dots, so that ``("a.b",)`` and ``("a", "b")`` are one:
        escape the dot, keep the levels apart, or refuse a level with a dot with ``InvalidArgument``."""
        spaces: list[Name] = [("a",), ("a.b",)]
        if CatalogAbility.NESTED_NAMESPACES in backend.abilities:
            spaces += [("a", "b"), ("a", "b.c"), ("a.b", "c"), ("a", "b", "c")]
        made: dict[Name, str] = {}
        for space in spaces:
            if self._is_made(lambda: backend.create_namespace(space, {"is": f"{space}"}), space):  # noqa: B023
                made[space] = f"{space}"
        for name in [(*space, "t") for space in made] + [("a", "b.t")]:
            if self._is_made(lambda: self._made_table(backend, name), name):  # noqa: B023
                made[name] = str(self._metadata_of(backend, name).table_uuid)
        for space in (each for each in spaces if each in made):
            found = backend.namespace_properties(space).get("is")
            assert found == made[space], f"the namespace {space} has the properties of {found}"
            below = {each for each in made if each in spaces and each[:-1] == space}
            if CatalogAbility.NESTED_NAMESPACES in backend.abilities:
                listed = {*backend.list_namespaces(space).items}
                assert listed == below, f"below {space} are the namespaces {sorted(below)}, and listed {sorted(listed)}"
            tables = {each for each in made if each not in spaces and each[:-1] == space}
            listed = {*backend.list_tables(space).items}
            assert listed == tables, f"in {space} are the tables {sorted(tables)}, and listed {sorted(listed)}"
        for name in (each for each in made if each not in spaces):
            found = str(self._metadata_of(backend, name).table_uuid)
            assert found == made[name], f"the table {name} has the metadata of another"

    def _is_made(self, make: Callable[[], object], name: Name) -> bool:
        """Whether a namespace or table is made; False if the catalog refuses its name."""
        try:
            make()
        except (NamespaceExists, TableExists) as error:
            raise AssertionError(f"{name} is taken by another name with a dot: {error}") from error
        except IcefieldError:
            return False
        return True

    # -- listings

    def test_a_listing_goes_on_though_names_vanish(self, backend: CatalogBackend) -> None:
        """If this fails, the token of a page counts names, or is a name that must still be there: names that are
        dropped between two pages shift the rest. Let the next page begin after the last name of the page before."""
        namespaces: list[Name] = [(f"n{number}",) for number in range(5)]
        for name in namespaces:
            backend.create_namespace(name, {})
        self._goes_on(backend, "namespaces", namespaces)
        backend.create_namespace(("a",), {})
        if isinstance(backend, ViewCatalog):
            views: list[Name] = [("a", f"v{number}") for number in range(5)]
            for name in views:
                self._new_view(backend, name)
            self._goes_on(backend, "views", views)

    def _goes_on(self, backend: CatalogBackend, what: str, names: list[Name]) -> None:
        """List in pages of two. Before the second page, drop the names of the first page and one more name."""
        first = self._page(backend, what, None)
        assert first.next_token is not None, f"a page of 2 {what} ends a listing of {len(names)}"
        gone = [name for name in first.items if name in names]
        gone.append(next(name for name in names if name not in gone))
        for name in gone:
            self._drop(backend, what, name)
        found: list[Name] = []
        token: str | None = first.next_token
        while token is not None:
            page = self._page(backend, what, token)
            found += page.items
            token = page.next_token
        right = [name for name in names if name not in gone]
        missing = [name[-1] for name in right if name not in found]
        assert not missing, f"{len(missing)} of {len(right)} {what} are left out after others were dropped: {missing}"
        assert [name for name in found if name in names] == right, f"a name is listed twice, or was dropped: {found}"

    def _drop(self, backend: CatalogBackend, what: str, name: Name) -> None:
        if what == "namespaces":
            backend.drop_namespace(name)
        elif what == "tables":
            backend.strategy(name).drop()
        else:
            self._with_views(backend).drop_view(name)

    def _page(self, backend: CatalogBackend, what: str, token: str | None) -> Page[Name]:
        if what == "namespaces":
            return backend.list_namespaces((), token=token, size=2)
        if what == "tables":
            return backend.list_tables(("a",), token=token, size=2)
        return self._with_views(backend).list_views(("a",), token=token, size=2)
