"""The endpoints of namespaces."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec
from icefield.abc import Page
from icefield.errors import InvalidArgument, NoSuchNamespace

from icefield_rest_server.answers import Answer, Refused, no_content
from icefield_rest_server.calls import Call, strings, typed
from icefield_rest_server.state import State, page_size

Name = tuple[str, ...]


def listed(state: State, call: Call, whole: Callable[[], list[Name]], page: Callable[..., Page[Name]]) -> Page[Name]:
    """A page of names if the request asks for pages, else all names."""
    token = call.query.get("pageToken")
    if token is None and "pageSize" not in call.query:
        return Page(tuple(whole()))
    return page(token=token or None, size=page_size(call, state.settings.max_page))


def named(namespace: Name, items: Sequence[Name]) -> msgspec.Raw:
    """Encode the names of a namespace's tables or views in the protocol's form, without an object for each."""
    if not items:
        return msgspec.Raw(b"[]")
    names = msgspec.json.encode([item[-1] for item in items])
    if b"\\" in names:  # an escaped quote in a name may look like the text between two names
        return msgspec.Raw(msgspec.json.encode([{"namespace": namespace, "name": item[-1]} for item in items]))
    begin = b'{"namespace":' + msgspec.json.encode(namespace) + b',"name":"'
    return msgspec.Raw(b"[" + begin + names[2:-2].replace(b'","', b'"},' + begin) + b'"}]')


def list_namespaces(state: State, call: Call) -> Answer:
    """List the namespaces directly below another, or at the top."""
    parent = call.target
    backend, catalog = state.catalog.backend, state.catalog
    page = listed(
        state, call, lambda: catalog.list_namespaces(parent), lambda **asked: backend.list_namespaces(parent, **asked)
    )
    return Answer(body={"namespaces": page.items, "next-page-token": page.next_token})


def create_namespace(state: State, call: Call) -> Answer:
    """Create a namespace with properties."""
    name = call.target
    properties = strings(call.document().get("properties"), "properties")
    _check_location(state, properties)
    state.catalog.create_namespace(name, properties)
    return Answer(body={"namespace": name, "properties": properties})


def load_namespace(state: State, call: Call) -> Answer:
    """Answer with the properties of a namespace."""
    name = call.namespace
    return Answer(body={"namespace": name, "properties": state.catalog.load_namespace_properties(name)})


def namespace_exists(state: State, call: Call) -> Answer:
    """Check that a namespace exists."""
    name = call.namespace
    if not state.catalog.namespace_exists(name):
        raise NoSuchNamespace(f"no namespace {'.'.join(name)} in catalog '{state.catalog.name}'")
    return no_content()


def drop_namespace(state: State, call: Call) -> Answer:
    """Drop an empty namespace."""
    state.catalog.drop_namespace(call.namespace)
    return no_content()


def update_properties(state: State, call: Call) -> Answer:
    """Set and remove properties in one step."""
    document: dict[str, Any] = call.document()
    removals = typed(document.get("removals") or [], list[str], "removals")
    updates = strings(document.get("updates"), "updates")
    if both := set(removals) & updates.keys():
        raise Refused(422, "UnprocessableEntityException", f"property '{min(both):.100}' is both set and removed")
    if any(not key for key in (*removals, *updates)):
        raise InvalidArgument("a property has an empty name")
    _check_location(state, {*updates, *removals})
    done = state.catalog.update_namespace_properties(call.namespace, removals, updates)
    return Answer(body={"updated": done.updated, "removed": done.removed, "missing": done.missing})


def _check_location(state: State, changed: Collection[str]) -> None:
    """Raise ``Refused`` for a location from a client if there is an authorizer; see ``State``."""
    if state.settings.authorizer is not None and "location" in changed:
        message = "this server takes no location of a namespace from clients: set it at the catalog behind"
        raise Refused(403, "ForbiddenException", message)
