"""The commit of a table in Glue: a change that names the version of the table that it is based on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from icefield.abc import FileSystem, Proposal, TableName
from icefield.errors import (
    AccessDenied,
    CommitStateUnknown,
    IcefieldError,
    NoSuchNamespace,
    NoSuchTable,
    TableExists,
)
from icefield.toolkit import Backoff, MetastoreStrategy, OutcomeUnknown, checked_names, folder_end

from icefield_glue.records import (
    METADATA_LOCATION,
    RENAMED_TO,
    changed_input,
    is_iceberg,
    new_input,
    parameters_of,
    pointer_in,
    version_of,
)
from icefield_glue.service import CHANGED, NOT_FOUND, TAKEN, GlueRefusal, GlueReplyLost, GlueService, Record

# The number of times that a change with a lost reply is sent again.
_TRIES: Final = 4
_AGAIN: Final = Backoff(0.1, 2.0)

IsOurs = Callable[[Record | None], bool]
"""Whether the present record of a table is the result of a change."""


class GlueStrategy(MetastoreStrategy):
    """Check-and-put of the table's parameter ``metadata_location``, by the version of the table in Glue."""

    def __init__(
        self,
        table: TableName,
        location: str,
        file_system: FileSystem,
        properties: Mapping[str, str],
        service: GlueService,
    ) -> None:
        super().__init__(table, location, file_system, properties)
        self._service = service
        self._database, self._name = kept_name(table)

    def read_pointer(self) -> str | None:
        return pointer_in(self._record(), self.table, self._service.catalog)

    def swap_pointer(self, old: str | None, new: str, proposal: Proposal) -> bool:
        def is_ours(record: Record | None) -> bool:
            return record is not None and parameters_of(record).get(METADATA_LOCATION) == new

        if old is None:
            made = new_input(self._name, new, proposal.metadata)
            return create_once(self._service, self._database, made, is_ours)
        record = self._record()
        if record is None or pointer_in(record, self.table, self._service.catalog) != old:
            return False
        before = {} if proposal.base is None else proposal.base.properties
        removed = before.keys() - proposal.metadata.properties.keys()
        changed = changed_input(record, new, proposal.metadata, removed)
        return change_once(self._service, self._database, record, changed, is_ours)

    def tables_in(self, folder: str) -> Iterator[tuple[str, str]]:
        end = folder_end(folder)
        for database in database_names(self._service):
            try:
                for record in self._service.tables(database):
                    location = parameters_of(record).get(METADATA_LOCATION, "")
                    if is_iceberg(record) and end in location and (database, record["Name"]) != kept_name(self.table):
                        yield f"{database}.{record['Name']}", location
            except GlueRefusal as refused:  # the database was dropped meanwhile, or others may not see it
                error = self._service.meaning(refused)
                if refused.code != NOT_FOUND and not isinstance(error, AccessDenied):
                    raise error from refused

    def drop(self) -> None:
        if self.read_pointer() is None:
            raise self._missing()
        try:
            self._service.change("delete_table", DatabaseName=self._database, Name=self._name)
        except GlueRefusal as refused:
            if refused.code == NOT_FOUND:
                raise self._missing() from refused
            raise self._service.meaning(refused) from refused
        except GlueReplyLost as lost:
            if not self._is_gone():
                raise CommitStateUnknown(
                    f"the reply to dropping {'.'.join(self.table)} was lost ({lost}), and the table is there: it may "
                    "still go; look again later",
                    table=self.table,
                ) from lost

    def _is_gone(self) -> bool:
        try:
            return self._record() is None
        except IcefieldError:
            return False

    def _record(self) -> Record | None:
        return self._service.table(self._database, self._name)

    def _missing(self) -> NoSuchTable:
        return NoSuchTable(f"no table {'.'.join(self.table)} in catalog '{self._service.catalog}'", table=self.table)


def change_once(
    service: GlueService, database: str, record: Record, changed: Mapping[str, Any], is_ours: IsOurs
) -> bool:
    """Replace a record of a table, unless the table has another version by now; False if it has.

    A change whose reply was lost is sent again with the same version, so that only one of the requests can succeed.
    Raises ``OutcomeUnknown`` if the outcome stays unknown; any other error means that nothing changed.
    """
    given = {
        "DatabaseName": database,
        "TableInput": changed,
        "VersionId": version_of(record, service.catalog),
        "SkipArchive": service.options.skip_archive,
    }
    return _settled(service, database, "update_table", given, is_ours, {CHANGED, NOT_FOUND})


def create_once(service: GlueService, database: str, made: Mapping[str, Any], is_ours: IsOurs) -> bool:
    """Create a table, unless the name is taken; False if it is.

    Raises ``OutcomeUnknown`` if the outcome stays unknown, ``NoSuchNamespace``, and ``TableExists`` for the remains of
    a rename; any other error means that nothing changed.
    """
    try:
        if _settled(
            service, database, "create_table", {"DatabaseName": database, "TableInput": made}, is_ours, {TAKEN}
        ):
            return True
    except GlueRefusal as refused:
        if refused.code == NOT_FOUND:
            raise no_namespace(service, (database,)) from refused
        raise service.meaning(refused) from refused
    taken = service.table(database, made["Name"])
    if taken is not None and (other := parameters_of(taken).get(RENAMED_TO)):
        name = f"{database}.{made['Name']}"
        raise TableExists(
            f"{name} is being renamed to {other}, or is left over from that: if the rename has ended, delete the table "
            f"{name} in Glue, which has no files",
            table=(database, made["Name"]),
        )
    return False


def _settled(
    service: GlueService, database: str, operation: str, given: Mapping[str, Any], is_ours: IsOurs, rivals: set[str]
) -> bool:
    """Make a change; False if a rival's change came first, which the codes in ``rivals`` say."""
    lost: GlueReplyLost | None = None
    for wait in (0.0, *_AGAIN.waits(_TRIES)):
        time.sleep(wait)
        try:
            service.change(operation, **given)
            return True
        except GlueReplyLost as error:
            lost = error
        except IcefieldError as error:  # no request was made
            if lost is None:
                raise
            raise OutcomeUnknown(str(lost)) from error
        except GlueRefusal as refused:
            if lost is None and refused.code not in rivals:
                if operation == "create_table":
                    raise
                raise service.meaning(refused) from refused
            # An earlier request may have succeeded, and Glue itself may try twice.
            if _looks_ours(service, database, str(given["TableInput"]["Name"]), is_ours):
                return True
            if lost is None:
                return False
            raise OutcomeUnknown(str(lost)) from refused
    raise OutcomeUnknown(str(lost)) from lost


def _looks_ours(service: GlueService, database: str, name: str, is_ours: IsOurs) -> bool:
    try:
        return is_ours(service.table(database, name))
    except IcefieldError as error:
        raise OutcomeUnknown(str(error)) from error


def kept_name(name: tuple[str, ...]) -> tuple[str, ...]:
    """The name of a database or table as Glue keeps it: in lower case."""
    return tuple(level.lower() for level in name)


def database_names(service: GlueService) -> list[str]:
    """The names of all databases, sorted."""
    names = (str(record["Name"]) for record in service.databases())
    return sorted(checked_names(f"the namespaces of catalog '{service.catalog}'", names))


def no_namespace(service: GlueService, namespace: tuple[str, ...]) -> NoSuchNamespace:
    """The error for a missing namespace."""
    return NoSuchNamespace(
        f"no namespace {'.'.join(namespace)} in catalog '{service.catalog}'; create_namespace makes it",
        namespace=namespace,
    )
