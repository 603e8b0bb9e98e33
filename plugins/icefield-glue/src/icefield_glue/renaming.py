"""The rename of a table, which Glue does not have: a copy of the record under the new name, then the old one goes.

Iceberg's Java library deletes the old record as it is then, and with it a commit that came between. Here the old record
is replaced by a mark first, if its version is the copied one. A writer that comes later finds no table there.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final
from uuid import uuid4

from icefield.abc import TableName
from icefield.errors import IcefieldError, NoSuchTable, StorageError, TableExists
from icefield.toolkit import OutcomeUnknown

from icefield_glue.records import (
    METADATA_LOCATION,
    PREVIOUS_LOCATION,
    RENAME,
    RENAMED_TO,
    TABLE_TYPE,
    input_of,
    parameters_of,
    pointer_in,
)
from icefield_glue.service import GlueRefusal, GlueReplyLost, GlueService, Record
from icefield_glue.strategy import change_once, create_once, kept_name

_log = logging.getLogger(__name__)

_TRIES: Final = 20


def rename(service: GlueService, source: TableName, target: TableName) -> None:
    """Rename a table. Raises ``NoSuchTable``, ``TableExists``, ``NoSuchNamespace`` and ``StorageError``."""
    (database, name), (to_database, to_name) = kept_name(source), kept_name(target)
    for _ in range(_TRIES):
        record = service.table(database, name)
        if record is None or pointer_in(record, source, service.catalog) is None:
            raise NoSuchTable(f"no table {'.'.join(source)} in catalog '{service.catalog}'", table=source)
        mark = uuid4().hex
        copied = input_of(record, to_name, {**parameters_of(record), RENAME: mark})
        try:
            if not create_once(service, to_database, copied, partial(_has, mark)):
                raise TableExists(
                    f"table {'.'.join(target)} exists already in catalog '{service.catalog}'", table=target
                )
            is_retired = _retire(service, database, record, ".".join(target), mark)
        except OutcomeUnknown as lost:
            raise StorageError(
                f"Glue did not answer while {'.'.join(source)} was renamed to {'.'.join(target)} ({lost}); look which "
                "of the two names is there, and drop the new one if both are, before it is written to"
            ) from lost
        except IcefieldError:
            _undo(service, to_database, copied, mark)
            raise
        if is_retired:
            _delete(service, database, name, mark)
            return
        _undo(service, to_database, copied, mark)  # a commit or another rename came between
    raise StorageError(
        f"table {'.'.join(source)} of catalog '{service.catalog}' is changed by others all the time", retryable=True
    )


def _has(mark: str, record: Record | None) -> bool:
    return record is not None and parameters_of(record).get(RENAME) == mark


def _retire(service: GlueService, database: str, record: Record, to: str, mark: str) -> bool:
    """Replace a table's record by a mark, so that nobody commits to it; False if it has changed."""
    gone = (METADATA_LOCATION, PREVIOUS_LOCATION)
    kept = {key: value for key, value in parameters_of(record).items() if key not in gone}
    marked = input_of(record, record["Name"], {**kept, TABLE_TYPE: "RENAMED", RENAMED_TO: to, RENAME: mark})

    def is_ours(found: Record | None) -> bool:
        return _has(mark, found) and RENAMED_TO in parameters_of(found or {})

    return change_once(service, database, record, marked, is_ours)


def _undo(service: GlueService, database: str, copied: Record, mark: str) -> None:
    """Remove the copy that a rename made, if nobody has written to it."""
    name = copied["Name"]
    try:
        made = service.table(database, name)
        is_copy = made is not None and parameters_of(made) == copied["Parameters"]
        if made is not None and is_copy and _retire(service, database, made, "its old name again", mark):
            _delete(service, database, name, mark)
    except (IcefieldError, OutcomeUnknown) as error:
        _log.warning("'%s.%s' is left over from a rename that failed: %s", database, name, error)


def _delete(service: GlueService, database: str, name: str, mark: str) -> None:
    """Delete a record that is marked. The rename is done by then, so a failure leaves the mark and is no error."""
    for _ in range(3):
        try:
            service.change("delete_table", DatabaseName=database, Name=name)
            return
        except GlueReplyLost:
            try:
                if not _has(mark, service.table(database, name)):
                    return
            except IcefieldError:
                continue
        except (GlueRefusal, IcefieldError) as error:
            _log.warning("the old record '%s.%s' of a renamed table is left in Glue: %s", database, name, error)
            return
    _log.warning("the old record '%s.%s' of a renamed table may be left in Glue", database, name)
