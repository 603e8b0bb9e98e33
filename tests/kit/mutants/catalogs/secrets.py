"""Catalogs that show, say, log or pickle a credential."""

from __future__ import annotations

import logging

from dictionary_catalog import DictionaryBackend
from icefield.abc import NamespaceName
from icefield.errors import NoSuchNamespace, StorageError

from mutants import Mutant, of

SECRET = "test_no_credential_is_shown_said_logged_or_pickled"


class ShowsItsProperties(DictionaryBackend):
    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.properties!r})"


class SaysItsProperties(DictionaryBackend):
    def check(self, namespace: NamespaceName) -> None:
        if namespace not in self.store.namespaces:
            raise NoSuchNamespace(f"no namespace {namespace} in {self.properties}", namespace=namespace)


class KeepsItsPropertiesInTheCause(DictionaryBackend):
    def check(self, namespace: NamespaceName) -> None:
        try:
            if namespace not in self.store.namespaces:
                raise KeyError(f"{self.properties} has no {namespace}")
        except KeyError as error:
            raise NoSuchNamespace("no such namespace", namespace=namespace) from error


class KeepsItsPropertiesInTheData(DictionaryBackend):
    def check(self, namespace: NamespaceName) -> None:
        if namespace not in self.store.namespaces:
            raise NoSuchNamespace("no such namespace", namespace=namespace, catalog=dict(self.properties))


class LogsItsProperties(DictionaryBackend):
    def list_namespaces(self, *args: object, **options: object) -> object:  # type: ignore[override]
        logging.getLogger(__name__).debug("asking %s", self.properties)
        return super().list_namespaces(*args, **options)  # type: ignore[arg-type]


class GivesItsPasswordForAnIdentity(DictionaryBackend):
    def credentials(self) -> str | None:
        return self.properties.get("dictionary.password")


class RefusesWithThePassword(DictionaryBackend):
    """Names the password in an error, but only if the service refuses it."""

    def list_tables(self, *args: object, **options: object) -> object:  # type: ignore[override]
        if password := self.properties.get("dictionary.password"):
            raise StorageError(f"the service refuses {password}")
        return super().list_tables(*args, **options)  # type: ignore[arg-type]


class _Remembers(NoSuchNamespace):
    def __reduce__(self) -> tuple[object, ...]:
        return (NoSuchNamespace, (self.message, *self.hidden))

    hidden: tuple[str, ...] = ()


class PicklesItsProperties(DictionaryBackend):
    """The error does not show the properties, but its pickle holds them."""

    def check(self, namespace: NamespaceName) -> None:
        if namespace not in self.store.namespaces:
            error = _Remembers("no such namespace", namespace=namespace)
            error.hidden = tuple(self.properties.values())
            raise error


MUTANTS: list[Mutant] = of(
    {
        ShowsItsProperties: (
            SECRET,
            "the secret of the properties kit.password, kit.uri is in the `repr` of the backend",
        ),
        SaysItsProperties: (SECRET, "NoSuchNamespace of namespace_properties of none"),
        KeepsItsPropertiesInTheCause: (SECRET, "KeyError of namespace_properties of none"),
        KeepsItsPropertiesInTheData: (SECRET, "NoSuchNamespace of namespace_properties of none"),
        PicklesItsProperties: (SECRET, "_Remembers of namespace_properties of none"),
        LogsItsProperties: (SECRET, "the log of a catalog: a record of mutants.catalogs.secrets"),
        GivesItsPasswordForAnIdentity: (SECRET, "dictionary.password is in the result of credentials()"),
        RefusesWithThePassword: (SECRET, "dictionary.password is in StorageError of list_tables"),
    }
)
