"""Namespaces at the service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from icefield.abc import NamespaceName
from icefield.errors import NamespaceExists, NamespaceNotEmpty, NoSuchNamespace
from icefield.toolkit import decodable

from icefield_rest.connection import outcome
from icefield_rest.endpoints import Endpoint
from icefield_rest.failures import ServiceRefusal, Uncertain, error_of
from icefield_rest.names import listed
from icefield_rest.service import Service
from icefield_rest.tables import missing_namespace


@decodable
class _ListNamespaces(msgspec.Struct):
    namespaces: list[list[str]] | None
    next_page_token: str | None = msgspec.field(default=None, name="next-page-token")

    def keys(self) -> Iterator[tuple[str, ...]]:
        """Iterate over the keys that identify the namespaces."""
        return (tuple(name) for name in self.namespaces or ())


@decodable
class _Namespace(msgspec.Struct):
    namespace: list[str] = msgspec.field(default_factory=list)
    properties: dict[str, str | None] | None = None


_names = msgspec.json.Decoder(_ListNamespaces)
_namespace = msgspec.json.Decoder(_Namespace)


class Namespaces:
    """The namespaces of one catalog."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def create(self, namespace: NamespaceName, properties: Mapping[str, str]) -> None:
        """Create a namespace. Raises ``NamespaceExists``."""
        service, what = self._service, f"creating namespace {'.'.join(namespace)}"
        service.joined_levels(namespace)  # do not create a namespace that cannot be addressed
        body = {"namespace": list(namespace), "properties": dict(properties)}
        try:
            service.connection.ask("POST", service.path("namespaces"), what, body=body)
        except Uncertain as lost:
            raise outcome(what, lost) from lost
        except ServiceRefusal as refused:
            if refused.status == 409:
                said = f"namespace {'.'.join(namespace)} exists already in catalog '{service.name}'"
                raise NamespaceExists(said, namespace=namespace) from refused
            raise error_of(refused, what) from refused

    def drop(self, namespace: NamespaceName) -> None:
        """Drop an empty namespace. Raises ``NoSuchNamespace``, ``NamespaceNotEmpty``."""
        service, what = self._service, f"dropping namespace {'.'.join(namespace)}"
        try:
            service.connection.ask("DELETE", service.namespace_path(namespace), what)
        except Uncertain as lost:
            raise outcome(what, lost) from lost
        except ServiceRefusal as refused:
            if refused.status == 409 or refused.kind == "NamespaceNotEmpty":
                said = f"namespace {'.'.join(namespace)} is not empty: {refused.said}"
                raise NamespaceNotEmpty(said, namespace=namespace) from refused
            raise self._error(refused, what, namespace) from refused

    def names(self, parent: NamespaceName) -> list[NamespaceName]:
        """The namespaces directly below one. Raises ``NoSuchNamespace``."""
        service, what = self._service, f"listing the namespaces of catalog '{self._service.name}'"
        query = {"parent": service.joined_levels(parent)} if parent else {}
        depth = len(parent)
        try:
            pages = list(listed(service, service.path("namespaces"), what, _names, query))
        except ServiceRefusal as refused:
            raise self._error(refused, what, parent) from refused
        found = {tuple(name) for page in pages for name in page.namespaces or ()}
        return sorted({name[: depth + 1] for name in found if len(name) > depth and name[:depth] == parent})

    def properties(self, namespace: NamespaceName) -> dict[str, str]:
        """The properties. Raises ``NoSuchNamespace``."""
        service, what = self._service, f"loading namespace {'.'.join(namespace)}"
        try:
            answer = service.connection.ask("GET", service.namespace_path(namespace), what)
        except ServiceRefusal as refused:
            raise self._error(refused, what, namespace) from refused
        found: _Namespace = answer.decoded(_namespace, what)
        return {key: value for key, value in (found.properties or {}).items() if value is not None}

    def exists(self, namespace: NamespaceName) -> bool:
        """Whether there is a namespace of a name."""
        service, what = self._service, f"looking for namespace {'.'.join(namespace)}"
        if not service.has(Endpoint.NAMESPACE_EXISTS):
            try:
                self.properties(namespace)
            except NoSuchNamespace:
                return False
            return True
        try:
            service.connection.ask("HEAD", service.namespace_path(namespace), what)
        except ServiceRefusal as refused:
            if refused.status == 404:
                return False
            raise error_of(refused, what) from refused
        return True

    def update(self, namespace: NamespaceName, updates: Mapping[str, str], removals: frozenset[str]) -> None:
        """Set and remove properties. Raises ``NoSuchNamespace``."""
        service, what = self._service, f"changing the properties of namespace {'.'.join(namespace)}"
        body = {"removals": sorted(removals), "updates": dict(updates)}
        try:
            service.connection.ask("POST", service.namespace_path(namespace, "properties"), what, body=body)
        except Uncertain as lost:
            raise outcome(what, lost) from lost
        except ServiceRefusal as refused:
            raise self._error(refused, what, namespace) from refused

    def _error(self, refused: ServiceRefusal, what: str, namespace: NamespaceName) -> Exception:
        if refused.status == 404 and namespace:
            return missing_namespace(namespace, refused)
        return error_of(refused, what)
