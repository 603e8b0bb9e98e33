"""The names in the path and the body of a request that an authorizer is asked about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from icefield_rest_server.calls import Call
from icefield_rest_server.routes import allowed_as
from icefield_rest_server.state import State

Name = tuple[str, ...]

_MAKES = ("createTable", "createView", "registerTable", "registerView")
_RENAMES = ("renameTable", "renameView")


def check_allowed(state: State, call: Call, names: Iterable[Name]) -> None:
    """Raise ``Refused`` if the client may not do a request's operation with one of the names."""
    operation = allowed_as(call.operation)
    for name in names:
        state.check_allowed(call.principal, operation, name, call.operation)


def named_in(call: Call) -> set[Name]:
    """Return the names in a body: tables and views, and the parent namespaces of new or renamed ones."""
    if not isinstance(call.body, dict):
        return set()
    given: list[Any] = [call.body.get("source"), call.body.get("destination")]
    changes = call.body.get("table-changes")
    if isinstance(changes, list):
        given += [change.get("identifier") for change in changes if isinstance(change, dict)]
    found: set[Name] = set()
    for each in given:
        if isinstance(each, dict) and isinstance(each.get("namespace"), list):
            found.add(tuple(str(level) for level in (*each["namespace"], each.get("name"))))
            if call.operation in _RENAMES and each == given[1]:
                found.add(tuple(str(level) for level in each["namespace"]))
    if call.operation in _MAKES and "namespace" in call.parts:
        found.add((*call.namespace, str(call.body.get("name"))))
    if call.operation == "createNamespace":
        found.update((call.target, call.target[:-1]))
    return found
