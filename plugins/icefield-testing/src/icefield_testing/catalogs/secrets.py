"""Checks that no credential is in a ``repr``, an error, a log or a pickle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import uuid4

from icefield.abc import CatalogBackend, TableName, ViewCatalog

from icefield_testing.catalogs.base import CatalogChecks
from icefield_testing.fault_model import KINDS
from icefield_testing.planted_secrets import PlantedSecret
from icefield_testing.service_faults import RequestFaults

_UNKNOWN: Final = {"kit.password": "{secret}", "kit.uri": "kit://user:{secret}@host/x"}
_WHILE_DOWN: Final = ("create_namespace", "list_tables", "load")
"""The calls that are made while the service is down. They are few, since a client may retry each for a while."""


class SecretChecks(CatalogChecks):
    """Checks with planted credentials, in the properties of ``credentials`` and in one that no catalog knows."""

    def test_no_credential_is_shown_said_logged_or_pickled(
        self, backend: CatalogBackend, service: RequestFaults | None
    ) -> None:
        """If this fails, a ``repr``, an error, its cause, a log or a pickled answer holds a property or a URI with its
        password: name the thing and the host, and raise ``from None`` where a cause repeats them."""
        for given in (_UNKNOWN, *self.credentials):
            secret = PlantedSecret(f"the properties {', '.join(sorted(given))}")
            properties = {**backend.properties, **secret.planted(given)}
            secret.search_also(properties)
            with secret.watching_logs("a catalog"):
                planted = self._built(backend, properties, secret)
                if planted is None:
                    continue
                self._show(secret, planted)
                if service is not None and given is _UNKNOWN:
                    through = self.backend_through(service, planted)
                    service.arm(KINDS["stays down"](0))
                    self._show(secret, through, while_down=True)
                    service.disarm()
                    through.close()
                planted.close()

    def _built(
        self, backend: CatalogBackend, properties: Mapping[str, str], secret: PlantedSecret
    ) -> CatalogBackend | None:
        try:
            return type(backend)(backend.name, properties, backend.io)
        except Exception as error:
            secret.check_error("the constructor", error)
            return None

    def _show(self, secret: PlantedSecret, backend: CatalogBackend, *, while_down: bool = False) -> None:
        """Search the answers and errors of a catalog for the secret."""
        when = " while the service is down" if while_down else ""
        secret.check_texts(f"the `repr` of the backend{when}", [f"{backend!r} {backend}"])
        for name, call in self._calls(backend).items():
            if while_down and name not in _WHILE_DOWN:
                continue
            try:
                answer = call()
            except Exception as error:
                secret.check_error(f"{name}{when}", error)
            else:
                secret.check(f"the result of {name}{when}", answer)

    def _calls(self, backend: CatalogBackend) -> dict[str, Callable[[], Any]]:
        number = uuid4().hex[:8]  # a lost request may leave a lock on a name, even without a table
        space, none = (f"s{number}",), (f"no{number}",)
        table, nothing, other = (*space, "t"), (*none, "t"), (*none, "u")
        calls: dict[str, Callable[[], Any]] = {
            "credentials()": backend.credentials,
            "create_namespace": lambda: backend.create_namespace(space, {}),
            "create_namespace again": lambda: backend.create_namespace(space, {}),
            "namespace_properties": lambda: backend.namespace_properties(space),
            "namespace_properties of none": lambda: backend.namespace_properties(none),
            "update_namespace_properties of none": lambda: backend.update_namespace_properties(
                none, {"a": "b"}, frozenset()
            ),
            "list_namespaces": lambda: backend.list_namespaces(()),
            "list_tables": lambda: backend.list_tables(space),
            "list_tables of none": lambda: backend.list_tables(none),
            "table_location of none": lambda: backend.table_location(nothing),
            "a strategy": lambda: repr(backend.strategy(table)),
            "a commit": lambda: self._created(backend, table),
            "a second creation": lambda: self._created(backend, table),
            "load": lambda: repr(backend.strategy(table).load()),  # the pickle may hold credentials for the table
            "a drop of the namespace in use": lambda: backend.drop_namespace(space),
            "register_table": lambda: backend.register_table(nothing, "memory://kit/none.metadata.json"),
            "rename_table": lambda: backend.rename_table(nothing, other),
            "a drop of no table": lambda: backend.strategy((*space, "no")).drop(),
            "a drop of the table": lambda: backend.strategy(table).drop(),
            "drop_namespace": lambda: backend.drop_namespace(space),
            "drop_namespace of none": lambda: backend.drop_namespace(none),
        }
        if isinstance(backend, ViewCatalog):
            calls["list_views of none"] = lambda: backend.list_views(none)
            calls["drop_view of none"] = lambda: backend.drop_view(nothing)
            calls["rename_view of none"] = lambda: backend.rename_view(nothing, other)
        return calls

    def _created(self, backend: CatalogBackend, table: TableName) -> str:
        proposal = self._table_creation(backend, table)
        return repr(backend.strategy(table, proposal.metadata.location).commit(None, proposal))
