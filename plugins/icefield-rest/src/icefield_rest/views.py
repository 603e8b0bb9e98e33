"""Views at the service."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from icefield.abc import CurrentView, TableName, ViewProposal
from icefield.errors import (
    CommitStateUnknown,
    IcefieldError,
    NoSuchView,
    NotSupportedByCatalog,
    TableExists,
    ViewExists,
)
from icefield.metadata import decode_view_metadata, view_requirements_to_json, view_updates_to_json
from icefield.toolkit import decodable

from icefield_rest.connection import MAX_TABLE, ServiceResponse, outcome
from icefield_rest.endpoints import Endpoint
from icefield_rest.failures import ServiceRefusal, Uncertain, error_of
from icefield_rest.names import Identifier, NamesPage, listed
from icefield_rest.service import Service, may_say
from icefield_rest.tables import Tables, is_gone, missing_namespace

# Where an update's value stands in the body that creates a view.
_PLACES: Final = {
    "set-location": ("location", "location"),
    "add-schema": ("schema", "schema"),
    "add-view-version": ("view-version", "view-version"),
    "set-properties": ("updates", "properties"),
}


@decodable
class _LoadViewResult(msgspec.Struct, rename="kebab"):
    metadata_location: str
    metadata: msgspec.Raw
    config: dict[str, str | None] | None = None


_names = msgspec.json.Decoder(NamesPage)
_loaded = msgspec.json.Decoder(_LoadViewResult)


class Views:
    """The views of one catalog."""

    def __init__(self, service: Service, tables: Tables) -> None:
        self._service, self._tables = service, tables

    def names(self, namespace: tuple[str, ...]) -> list[str]:
        """The names of the views in a namespace. Raises ``ServiceRefusal``."""
        service, what = self._service, f"listing the views of {'.'.join(namespace)}"
        service.needs(Endpoint.LIST_VIEWS, what)
        path = service.namespace_path(namespace, "views")
        return [found.name for page in listed(service, path, what, _names) for found in page.identifiers or ()]

    def load(self, view: TableName) -> CurrentView | None:
        """A view; None if there is no view with this name."""
        service, what = self._service, f"loading view {'.'.join(view)}"
        service.needs(Endpoint.LOAD_VIEW, what)
        try:
            answer = service.connection.ask("GET", service.view_path(view), what, limit=MAX_TABLE)
        except ServiceRefusal as refused:
            if refused.status == 404:
                return None
            raise error_of(refused, what) from refused
        return self._current(answer, what)

    def commit(self, view: TableName, base: CurrentView | None, proposal: ViewProposal) -> CurrentView | None:
        """Commit a proposal; None where another change came first."""
        service, what = self._service, f"committing view {'.'.join(view)}"
        service.needs(Endpoint.CREATE_VIEW if base is None else Endpoint.REPLACE_VIEW, what)
        if base is None:
            path, body = service.namespace_path(view[:-1], "views"), _create_body(view, proposal)
        else:
            path, body = service.view_path(view), _change_body(view, proposal)
        try:
            answer = service.connection.ask("POST", path, what, body=body, limit=MAX_TABLE)
        except Uncertain as lost:
            return self._settled(view, base, proposal, lost)
        except ServiceRefusal as refused:
            if refused.status == 409:
                if base is None:
                    raise self._taken(view, refused) from refused
                return None
            if refused.status == 404 and (base is None or self._says_missing(refused, view)):
                if base is None or refused.kind == "NoSuchNamespace":
                    raise missing_namespace(view[:-1], refused) from refused
                raise self._missing(view) from refused
            raise error_of(refused, what) from refused
        try:
            return self._current(answer, what)
        except IcefieldError as error:
            return self._settled(view, base, proposal, Uncertain(str(error)))

    def drop(self, view: TableName) -> None:
        """Drop a view. Raises ``NoSuchView``."""
        service, what = self._service, f"dropping view {'.'.join(view)}"
        service.needs(Endpoint.DROP_VIEW, what)
        try:
            service.connection.ask("DELETE", service.view_path(view), what)
        except Uncertain as lost:
            if not is_gone(service, service.view_path(view), f"looking for view {'.'.join(view)}"):
                raise outcome(what, lost) from lost
        except ServiceRefusal as refused:
            if self._says_missing(refused, view):
                raise self._missing(view) from refused
            raise error_of(refused, what) from refused

    def rename(self, source: TableName, target: TableName) -> None:
        """Rename a view. Raises ``NoSuchView``, ``ViewExists``, ``TableExists``, ``NoSuchNamespace``."""
        service, what = self._service, f"renaming view {'.'.join(source)} to {'.'.join(target)}"
        service.needs(Endpoint.RENAME_VIEW, what)
        body = {"source": Identifier.of(source), "destination": Identifier.of(target)}
        try:
            service.connection.ask("POST", service.path("views", "rename"), what, body=body)
        except Uncertain as lost:
            raise outcome(what, lost) from lost
        except ServiceRefusal as refused:
            if refused.status == 409:
                raise self._taken(target, refused) from refused
            if refused.status == 404 and refused.kind == "NoSuchNamespace":
                raise missing_namespace(target[:-1], refused) from refused
            if self._says_missing(refused, source):
                raise self._missing(source) from refused
            raise error_of(refused, what) from refused

    def _current(self, answer: ServiceResponse, what: str) -> CurrentView:
        found: _LoadViewResult = answer.decoded(_loaded, what)
        metadata = decode_view_metadata(bytes(found.metadata), found.metadata_location)
        return CurrentView(found.metadata_location, metadata, may_say(found.config or {}))

    def _settled(
        self, view: TableName, base: CurrentView | None, proposal: ViewProposal, lost: Uncertain
    ) -> CurrentView | None:
        """Load the view to determine the outcome of a commit with a lost reply."""
        found, wanted = self._looked_for(view), proposal.metadata
        if (
            found is not None
            and found.metadata.current_version().content == wanted.current_version().content
            and dict(found.metadata.properties) == dict(wanted.properties)
        ):
            return found
        if found is not None and lost.then is not None and lost.conflicts:
            if base is None:
                raise self._taken(view, lost.then) from lost
            return None
        what, declined = f"committing view {'.'.join(view)}", lost.declined
        if declined is not None and base is not None and found is not None and found.location == base.location:
            raise error_of(declined, what) from lost
        raise CommitStateUnknown(
            f"the reply to committing view {'.'.join(view)} was lost ({lost}), and the catalog does not show whether "
            "it happened: load the view again and look for the change",
            view=view,
        ) from lost

    def _looked_for(self, view: TableName) -> CurrentView | None:
        try:
            return self.load(view)
        except IcefieldError:
            return None

    def _says_missing(self, refused: ServiceRefusal, view: TableName) -> bool:
        """Whether an answer to a change says that a view is missing.

        An answer that is not in the protocol's form counts only if the view cannot be loaded.
        """
        return refused.status == 404 and (refused.modelled or self.load(view) is None)

    def _taken(self, name: TableName, refused: ServiceRefusal) -> IcefieldError:
        try:
            table = self._tables.exists(name)
        except (IcefieldError, NotSupportedByCatalog):
            table = False
        if table:
            return TableExists(f"a table {'.'.join(name)} exists already: {refused.said}", table=name)
        return ViewExists(f"view {'.'.join(name)} exists already: {refused.said}", view=name)

    def _missing(self, view: TableName) -> NoSuchView:
        return NoSuchView(f"no view {'.'.join(view)} in catalog '{self._service.name}'", view=view)


def _create_body(view: TableName, proposal: ViewProposal) -> dict[str, Any]:
    body: dict[str, Any] = {"name": view[-1], "properties": {}}
    for update in view_updates_to_json(proposal.updates):
        if place := _PLACES.get(update["action"]):
            body[place[1]] = update[place[0]]
    body["view-version"] = {**body["view-version"], "schema-id": body["schema"].get("schema-id", 0)}
    return body


def _change_body(view: TableName, proposal: ViewProposal) -> dict[str, Any]:
    return {
        "identifier": Identifier.of(view),
        "requirements": view_requirements_to_json(proposal.requirements),
        "updates": view_updates_to_json(proposal.updates),
    }
