"""Tables at the service: conditional loading with cached metadata, and changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from icefield.abc import TableChange, TableName
from icefield.errors import (
    CommitStateUnknown,
    IcefieldError,
    NoSuchNamespace,
    NoSuchTable,
    StorageError,
    TableExists,
)
from icefield.metadata import TableMetadata, requirements_to_json, updates_to_json
from icefield.toolkit import LruCache

from icefield_rest.answers import LoadedTable, committed, loaded
from icefield_rest.connection import MAX_TABLE, outcome
from icefield_rest.endpoints import Endpoint
from icefield_rest.failures import ServiceRefusal, Uncertain, error_of
from icefield_rest.names import Identifier, NamesPage, listed
from icefield_rest.service import Service
from icefield_rest.settings import ALL, is_header_value

_GONE: Final = ("NoSuchTable", "NoSuchNamespace", "NotFound")


_names = msgspec.json.Decoder(NamesPage)


class Tables:
    """The tables of one catalog. Caches recently loaded tables, to request only changed ones."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._known: LruCache[TableName, LoadedTable] = LruCache(max(1, service.settings.cached_tables))

    def load(self, table: TableName) -> LoadedTable | None:
        """The table, or None when there is none. Raises ``StorageError``."""
        service, what, headers = self.service, f"loading {_shown(table)}", {}
        known = self._known.get(table)
        if known is not None and known.etag is not None and is_header_value(known.etag) and known.lasts:
            headers["If-None-Match"] = known.etag
        path, mode = service.table_path(table), service.settings.snapshots
        try:
            answer = service.connection.ask(
                "GET", path, what, query={"snapshots": mode}, headers=headers, limit=MAX_TABLE
            )
        except ServiceRefusal as refused:
            if is_missing(refused):
                self.forget(table)
                return None
            raise error_of(refused, what) from refused
        if answer.status == 304:
            if known is None:
                raise StorageError(f"{what}: the service says that nothing has changed since nothing was loaded")
            return known
        whole = None if mode == ALL else lambda: self._whole(table)
        found = loaded(service, table, answer, known, whole)
        self._known.put(table, found)
        return found

    def looked_for(self, table: TableName) -> LoadedTable | None:
        """The table; None if it does not exist, or cannot be loaded."""
        try:
            return self.load(table)
        except IcefieldError:
            return None

    def exists(self, table: TableName) -> bool:
        """Whether there is a table of a name."""
        service, what = self.service, f"looking for {_shown(table)}"
        if not service.has(Endpoint.TABLE_EXISTS):
            return self.load(table) is not None
        try:
            service.connection.ask("HEAD", service.table_path(table), what)
        except ServiceRefusal as refused:
            if refused.status == 404:  # without a body, so without the error model
                return False
            raise error_of(refused, what) from refused
        return True

    def names(self, namespace: tuple[str, ...]) -> list[str]:
        """The names of the tables in a namespace. Raises ``ServiceRefusal``."""
        service = self.service
        path = service.namespace_path(namespace, "tables")
        what = f"listing the tables of {'.'.join(namespace)}"
        return [found.name for page in listed(service, path, what, _names) for found in page.identifiers or ()]

    def create(self, table: TableName, body: dict[str, Any]) -> LoadedTable:
        """Create a table, or stage its creation. Raises ``TableExists``, ``NoSuchNamespace``."""
        service, what = self.service, f"creating {_shown(table)}"
        staged = bool(body["stage-create"])
        path = service.namespace_path(table[:-1], "tables")
        try:
            answer = service.connection.ask(
                "POST",
                path,
                what,
                body={"name": table[-1], **body},
                limit=MAX_TABLE,
                repeatable=True if staged else None,
            )
        except Uncertain as lost:
            if lost.declined is not None and self.is_gone(table):
                raise error_of(lost.declined, what) from lost
            raise CommitStateUnknown(
                f"the reply to creating {_shown(table)} was lost ({lost}): look whether it is there, and whether it is "
                "the one that was to be created",
                table=table,
            ) from lost
        except ServiceRefusal as refused:
            if refused.status == 409:
                raise TableExists(f"table {_shown(table)} exists already: {refused.said}", table=table) from refused
            if refused.status == 404:
                raise missing_namespace(table[:-1], refused) from refused
            raise error_of(refused, what) from refused
        try:
            made = loaded(service, table, answer)
        except IcefieldError as error:
            if staged:
                raise
            raise CommitStateUnknown(
                f"{_shown(table)} was created, but the answer cannot be read ({error}): load it", table=table
            ) from error
        if not staged:
            self._known.put(table, made)
        return made

    def commit(self, table: TableName, proposal: Any, *, create: bool) -> LoadedTable:
        """Commit a proposal. Raises ``ServiceRefusal`` and ``Uncertain``."""
        service = self.service
        before = None if create else self._known.get(table)
        answer = service.connection.ask(
            "POST",
            service.table_path(table),
            f"committing {_shown(table)}",
            body=_change(table, proposal),
            token=before.token if before is not None else None,
            limit=MAX_TABLE,
        )
        try:
            made = committed(service, table, answer, before)
        except IcefieldError as error:
            raise Uncertain(str(error)) from error
        self._known.put(table, made)
        return made

    def commit_all(self, changes: Sequence[TableChange]) -> None:
        """Commit changes of several tables in one step. Raises ``ServiceRefusal`` and ``Uncertain``."""
        service = self.service
        body = {"table-changes": [_change(change.table, change.proposal) for change in changes]}
        try:
            service.connection.ask(
                "POST", service.path("transactions", "commit"), "committing a transaction", body=body
            )
        finally:
            for change in changes:
                self.forget(change.table)

    def drop(self, table: TableName, *, purge: bool) -> None:
        """Drop a table. Raises ``NoSuchTable``."""
        service, what = self.service, f"dropping {_shown(table)}"
        self.forget(table)
        try:
            service.connection.ask(
                "DELETE", service.table_path(table), what, query={"purgeRequested": "true" if purge else "false"}
            )
        except Uncertain as lost:
            if self.is_gone(table):
                return
            raise CommitStateUnknown(
                f"the reply to dropping {_shown(table)} was lost ({lost}), and it is there still: it may go yet",
                table=table,
            ) from lost
        except ServiceRefusal as refused:
            if self.says_missing(refused, table):
                raise no_table(table, service.name) from refused
            raise error_of(refused, what) from refused

    def register(self, table: TableName, metadata_location: str) -> None:
        """Make a table known. Raises ``TableExists``, ``NoSuchNamespace``."""
        service, what = self.service, f"registering {_shown(table)}"
        service.needs(Endpoint.REGISTER_TABLE, what)
        body = {"name": table[-1], "metadata-location": metadata_location, "overwrite": False}
        self.forget(table)
        try:
            service.connection.ask(
                "POST", service.namespace_path(table[:-1], "register"), what, body=body, limit=MAX_TABLE
            )
        except Uncertain as lost:
            found = self.looked_for(table)
            if found is None or found.current.pointer.location != metadata_location:
                raise outcome(what, lost) from lost
        except ServiceRefusal as refused:
            if refused.status == 409:
                raise TableExists(f"table {_shown(table)} exists already: {refused.said}", table=table) from refused
            if refused.status == 404:
                raise missing_namespace(table[:-1], refused) from refused
            raise error_of(refused, what) from refused

    def rename(self, source: TableName, target: TableName) -> None:
        """Rename a table. Raises ``NoSuchTable``, ``TableExists``, ``NoSuchNamespace``."""
        service, what = self.service, f"renaming {_shown(source)} to {_shown(target)}"
        service.needs(Endpoint.RENAME_TABLE, what)
        service.table_path(target)  # reject a name that cannot be addressed
        body = {"source": Identifier.of(source), "destination": Identifier.of(target)}
        for name in (source, target):
            self.forget(name)
        try:
            service.connection.ask("POST", service.path("tables", "rename"), what, body=body)
        except Uncertain as lost:
            if not (self.is_gone(source) and self.looked_for(target) is not None):
                raise outcome(what, lost) from lost
        except ServiceRefusal as refused:
            if refused.status == 409:
                raise TableExists(f"table {_shown(target)} exists already: {refused.said}", table=target) from refused
            if refused.status == 404 and refused.kind == "NoSuchNamespace":
                raise missing_namespace(target[:-1], refused) from refused
            if self.says_missing(refused, source):
                raise no_table(source, service.name) from refused
            raise error_of(refused, what) from refused

    def forget(self, table: TableName) -> None:
        """Drop a table from the cache."""
        self._known.pop(table)

    def _whole(self, table: TableName) -> TableMetadata:
        """Load the metadata with all snapshots. The cache is not updated: an ETag may belong to a snapshot mode."""
        service, what = self.service, f"loading the snapshots of {_shown(table)}"
        path, query = service.table_path(table), {"snapshots": ALL}
        try:
            answer = service.connection.ask("GET", path, what, query=query, limit=MAX_TABLE)
        except ServiceRefusal as refused:
            raise (no_table(table, service.name) if is_missing(refused) else error_of(refused, what)) from refused
        metadata = loaded(service, table, answer).current.metadata
        assert metadata is not None
        return metadata

    def is_gone(self, table: TableName) -> bool:
        """Whether the service itself says, in the protocol's form, that a table does not exist."""
        self.forget(table)
        return is_gone(self.service, self.service.table_path(table), f"looking for {_shown(table)}")

    def says_missing(self, refused: ServiceRefusal, table: TableName) -> bool:
        """Whether an answer to a change says that a table is missing.

        An answer that is not in the protocol's form counts only if the table cannot be loaded.
        """
        return is_missing(refused) and (refused.modelled or self.load(table) is None)


def is_missing(refused: ServiceRefusal) -> bool:
    """Whether an answer says that a table does not exist.

    Services send different bodies with a 404, and some send none. The request for the configuration has already shown
    that the service speaks the protocol.
    """
    return refused.status == 404 and (not refused.modelled or refused.kind in _GONE or not refused.kind)


def is_gone(service: Service, path: str, what: str) -> bool:
    """Whether the service itself says, in the protocol's form, that a path has no resource."""
    try:
        service.connection.ask("GET", path, what, limit=MAX_TABLE)
    except ServiceRefusal as refused:
        return refused.status == 404 and refused.modelled
    except IcefieldError:
        pass
    return False


def no_table(table: TableName, catalog: str) -> NoSuchTable:
    """The error for a table that does not exist."""
    return NoSuchTable(f"no table {_shown(table)} in catalog '{catalog}'", table=table)


def missing_namespace(namespace: tuple[str, ...], refused: ServiceRefusal) -> NoSuchNamespace:
    """The error for a namespace that does not exist."""
    hint = "" if refused.modelled else ", not in the protocol's form: if it is there, look at 'prefix' and 'warehouse'"
    return NoSuchNamespace(f"no namespace {_shown(namespace)}: {refused.said}{hint}", namespace=namespace)


def _change(table: TableName, proposal: Any) -> dict[str, Any]:
    return {
        "identifier": Identifier.of(table),
        "requirements": requirements_to_json(proposal.requirements),
        "updates": updates_to_json(proposal.updates),
    }


def _shown(name: tuple[str, ...]) -> str:
    return ".".join(name)
