"""The page about maintenance by policy: goals of a table, planned operations, and those of the record."""

from __future__ import annotations

import logging
import time
from typing import Final

import icefield
from icefield import Table
from icefield.errors import InvalidArgument, NoSuchNamespace, NoSuchTable
from icefield_maintenance.tend import Policy, TableOutlook, outlook_of
from icefield_rest_server import Answer, PageRequest, Refused

from icefield_explorer.visits import TableVisit, loaded

_log = logging.getLogger(__name__)

_PROPERTY: Final = "tend.policy"
_OF_PROPERTIES: Final = Policy.from_mapping({"rules": [{"tables": "*"}]})
"""Without a policy, the goals are those of the tables' properties."""

_HELD: Final = 60
"""Seconds for which an outlook is reused."""


def maintenance(request: PageRequest, policy: Policy | None = None) -> Answer:
    """The page about the maintenance of a table, by default with the policy that the configuration names."""
    visit = TableVisit.of(request, "maintenance", files=True)
    table, chosen = visit.table, policy or configured(request.access.catalog_name)
    record, note = _record(request, chosen)
    now = time.time_ns() // 1_000_000
    key = (chosen, None if record is None else record.metadata_location, now // (_HELD * 1000))
    found: TableOutlook | None = visit.result("maintenance", lambda: outlook_of(table, chosen, record, now), *key)
    return visit.page("maintenance.html", found=found, note=note, is_stated=chosen.record)


def configured(catalog: str) -> Policy:
    """The policy that the configuration of a catalog names by ``tend.policy``. Raises ``Refused``."""
    path = icefield.catalog_properties(catalog, {}).get(_PROPERTY)
    try:
        return _OF_PROPERTIES if path is None else Policy.from_file(path)
    except InvalidArgument as error:
        _log.error("the page about maintenance cannot be shown: %s", error)  # it names a path of the server
        message = f"the policy that {_PROPERTY} names cannot be used; see the log of the server"
        raise Refused(500, "InternalServerError", message) from error


def _record(request: PageRequest, policy: Policy) -> tuple[Table | None, str]:
    """The record of a policy if the client may read its rows; else the reason why there is none."""
    if policy.record is None:
        return None, ""
    try:
        record = loaded(request, tuple(policy.record.split(".")), request.access.table)
    except (NoSuchTable, NoSuchNamespace):
        return None, ""
    except Refused as error:
        if error.status != 403:
            raise
        return None, "You may not read the record of maintenance."
    return (record, "") if request.access.gives_rows(record) else (None, "You may not read the record of maintenance.")
