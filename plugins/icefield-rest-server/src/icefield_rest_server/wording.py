"""The beginnings of error messages that clients expect: other servers use them, and programs compare them."""

from __future__ import annotations

from typing import Any

from icefield.errors import (
    CommitFailed,
    IcefieldError,
    InvalidArgument,
    NamespaceExists,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
    TableExists,
    ViewExists,
)

from icefield_rest_server.calls import Call, renaming

_REQUIREMENTS = {
    "assert-table-uuid": "UUID does not match",
    "assert-view-uuid": "view UUID does not match",
    "assert-current-schema-id": "current schema changed",
    "assert-last-assigned-field-id": "last assigned field id changed",
    "assert-last-assigned-partition-id": "last assigned partition id changed",
    "assert-default-spec-id": "default partition spec changed",
    "assert-default-sort-order-id": "default sort order changed",
}


def worded(error: IcefieldError, call: Call) -> str:
    """Return the message of an error: first the wording that clients search for, then Icefield's own message."""
    lead = _lead(error, call)
    if lead is not None and isinstance(error, NoSuchNamespace):
        return lead  # clients compare the whole of it
    return error.message if lead is None else f"{lead}; {error.message}"


def _lead(error: IcefieldError, call: Call) -> str | None:
    match error:
        case NoSuchTable():
            return f"Table does not exist: {_name(error, call)}"
        case NoSuchView():
            return f"View does not exist: {_name(error, call)}"
        case NoSuchNamespace():
            return f"Namespace does not exist: {_name(error, call)}"
        case NamespaceExists():
            return f"Namespace already exists: {_name(error, call)}"
        case NamespaceNotEmpty():
            return f"Namespace {_name(error, call)} is not empty"
        case TableExists() | ViewExists():
            return _taken(error, call)
        case InvalidArgument() if "dialect" in error.data:
            return f"Invalid view version: Cannot add multiple queries for dialect {error.data['dialect']}"
        case CommitFailed() if (requirement := error.data.get("requirement")) is not None:
            return _unmet(error, call, str(requirement))
    return None


def _name(error: IcefieldError, call: Call) -> str:
    found = next((error.data[key] for key in ("table", "view", "namespace") if error.data.get(key)), call.target)
    return ".".join(found)


def _taken(error: TableExists | ViewExists, call: Call) -> str:
    """Describe a name that a table or a view already has."""
    is_view = isinstance(error, ViewExists) or "view" in error.data
    what = "View" if is_view else "Table"
    if call.operation in ("renameTable", "renameView"):
        source, target = (".".join(name) for name in renaming(call))
        return f"Cannot rename {source} to {target}. {what} already exists"
    if not is_view and call.operation in ("updateTable", "commitTransaction"):
        return f"Requirement failed: table already exists: {_name(error, call)}"
    wants_view = call.operation in ("createView", "replaceView", "registerView")
    if is_view == wants_view:
        return f"{what} already exists: {_name(error, call)}"
    return f"{what} with same name already exists: {_name(error, call)}"


def _unmet(error: IcefieldError, call: Call, requirement: str) -> str:
    if requirement == "assert-ref-snapshot-id":
        return f"Requirement failed: {_branch(error, call)}"
    if requirement == "assert-create":
        return f"Requirement failed: table already exists: {_name(error, call)}"
    found, expected = error.data.get("found"), error.data.get("expected")
    said = _REQUIREMENTS.get(requirement, requirement)
    return f"Requirement failed: {said}" + ("" if expected is None else f": expected {expected} != {found}")


def _branch(error: IcefieldError, call: Call) -> str:
    """Describe the state of the branch or tag that a requirement names."""
    asked = [given for given in _requirements(call.body) if given.get("type") == "assert-ref-snapshot-id"]
    ref = next((str(given.get("ref")) for given in asked if f"'{given.get('ref')}'" in error.message), "main")
    stated = next((given.get("snapshot-id") for given in asked if given.get("ref") == ref), None)
    if stated is None:
        return f"branch {ref} was created concurrently"
    if error.data.get("snapshot_id") is None:
        return f"branch or tag {ref} is missing, expected {stated}"
    return f"branch {ref} has changed: expected id {stated} != {error.data['snapshot_id']}"


def _requirements(body: Any) -> list[dict[str, Any]]:
    if not isinstance(body, dict):
        return []
    bodies = body["table-changes"] if isinstance(body.get("table-changes"), list) else [body]
    given = (each.get("requirements") for each in bodies if isinstance(each, dict))
    return [one for each in given if isinstance(each, list) for one in each if isinstance(one, dict)]
