"""Catalogs that change, confuse or lose names and values."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from dictionary_catalog import DictionaryBackend
from icefield.abc import CommitStrategy, NamespaceName, Page, TableName
from icefield.errors import NoSuchNamespace

from mutants import Mutant, of

KEPT = "test_a_name_is_kept_to_the_letter_or_refused"
PROPERTY = "test_a_property_is_kept_to_the_letter"
PAGES = "test_a_listing_goes_on_though_names_vanish"


class _ChangesNames(DictionaryBackend):
    def kept(self, name: tuple[str, ...]) -> tuple[str, ...]:
        raise AssertionError("a subclass brings it")

    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        super().create_namespace(self.kept(namespace), properties)

    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        return super().namespace_properties(self.kept(namespace))

    def strategy(self, table: TableName, location: str | None = None) -> CommitStrategy:
        return super().strategy(self.kept(table), location)

    def check(self, namespace: NamespaceName) -> None:
        super().check(self.kept(namespace))


class NormalizesNames(_ChangesNames):
    def kept(self, name: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(unicodedata.normalize("NFC", level) for level in name)


class TrimsNames(_ChangesNames):
    def kept(self, name: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(level.strip() for level in name)


class DecodesNames(_ChangesNames):
    def kept(self, name: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(unquote(level) for level in name)


class FoldsNames(_ChangesNames):
    def kept(self, name: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(level.lower() for level in name)


class SplitsNamesAtDots(_ChangesNames):
    def kept(self, name: tuple[str, ...]) -> tuple[str, ...]:
        return (*name[:-1], name[-1].strip("."))


class TrimsTablesOnly(DictionaryBackend):
    def strategy(self, table: TableName, location: str | None = None) -> CommitStrategy:
        return super().strategy((*table[:-1], table[-1].strip()), location)


class HidesNamesWithADot(DictionaryBackend):
    def page(self, names: Iterable[tuple[str, ...]], token: str | None, size: int | None) -> Page[tuple[str, ...]]:
        return super().page([name for name in names if not name[-1].startswith(".")], token, size)


class ListsDecodedNames(DictionaryBackend):
    def page(self, names: Iterable[tuple[str, ...]], token: str | None, size: int | None) -> Page[tuple[str, ...]]:
        found = super().page(names, token, size)
        return Page(tuple((*name[:-1], name[-1].replace("+", " ")) for name in found.items), found.next_token)


class _ChangesProperties(DictionaryBackend):
    def kept(self, properties: Mapping[str, str]) -> dict[str, str]:
        raise AssertionError("a subclass brings it")

    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        return self.kept(super().namespace_properties(namespace))


class LosesEmptyValues(_ChangesProperties):
    def kept(self, properties: Mapping[str, str]) -> dict[str, str]:
        return {key: value for key, value in properties.items() if value}


class TrimsValues(_ChangesProperties):
    def kept(self, properties: Mapping[str, str]) -> dict[str, str]:
        return {key: value.strip() for key, value in properties.items()}


class NormalizesValues(_ChangesProperties):
    def kept(self, properties: Mapping[str, str]) -> dict[str, str]:
        return {key: unicodedata.normalize("NFC", value) for key, value in properties.items()}


class ReadsNumbers(_ChangesProperties):
    def kept(self, properties: Mapping[str, str]) -> dict[str, str]:
        return {key: str(int(value)) if value.isdigit() else value for key, value in properties.items()}


class FoldsKeys(_ChangesProperties):
    def kept(self, properties: Mapping[str, str]) -> dict[str, str]:
        return {key.lower(): value for key, value in properties.items()}


class ReadsNullAsNothing(_ChangesProperties):
    def kept(self, properties: Mapping[str, str]) -> dict[str, str]:
        return {key: value for key, value in properties.items() if value != "null"}


class KeepsTheCallersMapping(DictionaryBackend):
    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        super().create_namespace(namespace, properties)
        self.store.namespaces[namespace] = properties  # type: ignore[assignment]


class GivesItsOwnMapping(DictionaryBackend):
    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        self.check(namespace)
        return self.store.namespaces[namespace]


class CountsNames(DictionaryBackend):
    """The token is an offset."""

    def page(self, names: Iterable[tuple[str, ...]], token: str | None, size: int | None) -> Page[tuple[str, ...]]:
        ordered, start = sorted(names), int(token or 0)
        end = len(ordered) if size is None else start + size
        return Page(tuple(ordered[start:end]), str(end) if end < len(ordered) else None)


class LooksForTheLastName(DictionaryBackend):
    """The token is a name that must still be there: without it the listing ends."""

    def page(self, names: Iterable[tuple[str, ...]], token: str | None, size: int | None) -> Page[tuple[str, ...]]:
        ordered = sorted(names)
        if token is not None and token not in [name[-1] for name in ordered]:
            return Page(())
        return super().page(ordered, token, size)


class BeginsAgainWithoutTheLastName(DictionaryBackend):
    def page(self, names: Iterable[tuple[str, ...]], token: str | None, size: int | None) -> Page[tuple[str, ...]]:
        ordered = sorted(names)
        is_gone = token is not None and token not in [name[-1] for name in ordered]
        return super().page(ordered, ordered[0][-1] if is_gone else token, size)


class CreatesBelowNothing(DictionaryBackend):
    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        if len(namespace) == 1:
            super().create_namespace(namespace, properties)
        else:
            self.store.namespaces[namespace] = dict(properties)


class GivesParentsThePropertiesOfChildren(DictionaryBackend):
    def create_namespace(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        for depth in range(1, len(namespace)):
            self.store.namespaces.setdefault(namespace[:depth], dict(properties))
        super().create_namespace(namespace, properties)


class DropsParents(DictionaryBackend):
    def drop_namespace(self, namespace: NamespaceName) -> None:
        if namespace not in self.store.namespaces:
            raise NoSuchNamespace("no such namespace", namespace=namespace)
        below = [name for name in self.store.namespaces if name[:-1] == namespace]
        hidden = {name: self.store.namespaces.pop(name) for name in below}
        super().drop_namespace(namespace)
        self.store.namespaces.update(hidden)


class JoinsLevelsWithDots(_ChangesNames):
    def kept(self, name: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(".".join(name).split("."))


class KeepsPropertiesByTheJoinedName(DictionaryBackend):
    def namespace_properties(self, namespace: NamespaceName) -> dict[str, str]:
        self.check(namespace)
        same = [name for name in self.store.namespaces if ".".join(name) == ".".join(namespace)]
        return super().namespace_properties(same[0])


class ListsBelowADot(DictionaryBackend):
    def list_namespaces(
        self, parent: NamespaceName, *, token: str | None = None, size: int | None = None
    ) -> Page[NamespaceName]:
        if parent:
            self.check(parent)
        prefix = "".join(f"{level}." for level in parent)
        depth = prefix.count(".")
        joined = {".".join(name): name for name in self.store.namespaces}
        below = (name for key, name in joined.items() if key.startswith(prefix) and key.count(".") == depth)
        return self.page(below, token, size) if parent else super().list_namespaces(parent, token=token, size=size)


DOTS = "test_a_dot_in_a_level_does_not_end_the_level"
PARENTS = "test_a_nested_namespace_has_parents_or_is_refused"

MUTANTS: list[Mutant] = of(
    {
        NormalizesNames: (KEPT, "names that differ in Unicode form are one"),
        TrimsNames: (KEPT, "names that differ in blanks are one"),
        DecodesNames: (KEPT, "names that differ in escapes are one"),
        FoldsNames: (KEPT, "names that differ in case are one"),
        SplitsNamesAtDots: (KEPT, "names that differ in dots are one"),
        TrimsTablesOnly: (KEPT, "names that differ in blanks are one"),
        HidesNamesWithADot: (KEPT, "dots of a name is not kept"),
        ListsDecodedNames: (KEPT, "escapes of a name is not kept"),
        LosesEmptyValues: (PROPERTY, "1 of 11 properties of created are changed: 'empty' with '' is gone"),
        TrimsValues: (PROPERTY, "2 of 11 properties of created are changed: 'blank' is '', not ' '"),
        NormalizesValues: (PROPERTY, "'decomposed' is 'caf\\xe9', not 'cafe\\u0301'"),
        ReadsNumbers: (PROPERTY, "'number' is '7', not '007'"),
        ReadsNullAsNothing: (PROPERTY, "'word' with 'null' is gone"),
        FoldsKeys: (PROPERTY, "'KEY' with '1' is gone"),
        KeepsTheCallersMapping: (PROPERTY, "'empty' is 'changed by the caller'"),
        GivesItsOwnMapping: (PROPERTY, "'blank' is 'changed by a reader'"),
        CountsNames: (PAGES, "2 of 2 namespaces are left out after others were dropped"),
        LooksForTheLastName: (PAGES, "2 of 2 namespaces are left out after others were dropped"),
        BeginsAgainWithoutTheLastName: (PAGES, "1 of 2 namespaces are left out"),
        JoinsLevelsWithDots: (DOTS, "('a', 'b') is taken by another name with a dot"),
        KeepsPropertiesByTheJoinedName: (DOTS, "the namespace ('a', 'b') has the properties of ('a.b',)"),
        ListsBelowADot: (DOTS, "below ('a',) are the namespaces"),
        CreatesBelowNothing: (PARENTS, "its parent is not listed"),
        GivesParentsThePropertiesOfChildren: (PARENTS, "a parent has the properties of its child"),
        DropsParents: (PARENTS, "DID NOT RAISE"),
    }
)
