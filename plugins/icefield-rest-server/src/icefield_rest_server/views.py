"""The endpoints of views."""

from __future__ import annotations

from contextlib import nullcontext

import msgspec
from icefield import View
from icefield.abc import ViewCatalog, ViewProposal
from icefield.errors import InvalidArgument, NoSuchView, ViewExists
from icefield.metadata import (
    ViewMetadata,
    ViewVersion,
    decode_view_metadata,
    encode_view_metadata,
    new_view_metadata,
    view_creation_updates,
    view_requirements_from_json,
    view_updates_from_json,
)
from icefield.schema import schema_from_json

from icefield_rest_server.answers import Answer, no_content
from icefield_rest_server.calls import (
    Call,
    check_updates,
    identifier,
    levels,
    renaming,
    stated_by_the_client,
    strings,
    typed,
)
from icefield_rest_server.namespaces import listed, named
from icefield_rest_server.state import State


def list_views(state: State, call: Call) -> Answer:
    """List the views directly in a namespace."""
    name, catalog = call.namespace, state.catalog
    page = listed(
        state, call, lambda: catalog.list_views(name), lambda **asked: _backend(state).list_views(name, **asked)
    )
    return Answer(body={"identifiers": named(name, page.items), "next-page-token": page.next_token})


def create_view(state: State, call: Call) -> Answer:
    """Create a view."""
    document = call.document()
    name = levels((*call.namespace, document.get("name")), "view")
    version = typed(document.get("view-version"), ViewVersion, "view-version")
    with stated_by_the_client():
        schema = schema_from_json(document.get("schema"))
    stated = typed(document.get("location") or "", str, "location")
    place = stated or state.catalog.free_location(name)
    with stated_by_the_client():
        metadata = new_view_metadata(schema, version, place, strings(document.get("properties"), "properties"))
    state.check_made(name, metadata)
    with stated_by_the_client() if stated else nullcontext():
        return _created(state, name, metadata)


def load_view(state: State, call: Call) -> Answer:
    """Load a view at its current version."""
    return _answer(state.catalog.load_view(call.name("view")))


def replace_view(state: State, call: Call) -> Answer:
    """Apply updates to a view if the requirements hold."""
    document = call.document()
    stated = document.get("identifier")
    if stated is not None and identifier(stated, "identifier") != call.name("view"):
        raise InvalidArgument("the identifier in the body is not that of the path")
    check_updates(document.get("updates"))
    with stated_by_the_client():
        updates = view_updates_from_json(document.get("updates"))
        requirements = view_requirements_from_json(document.get("requirements") or [])
    name = call.name("view")
    return _answer(state.catalog.commit_view(name, updates, requirements, judge=state.judge(call)))


def drop_view(state: State, call: Call) -> Answer:
    """Drop a view."""
    state.catalog.drop_view(call.name("view"))
    return no_content()


def view_exists(state: State, call: Call) -> Answer:
    """Check that a view exists."""
    name = call.name("view")
    if not state.catalog.view_exists(name):
        raise NoSuchView(f"no view {'.'.join(name)} in catalog '{state.catalog.name}'", view=name)
    return no_content()


def rename_view(state: State, call: Call) -> Answer:
    """Rename a view. It is not loaded afterwards, so that a completed rename cannot fail."""
    _backend(state).rename_view(*renaming(call))
    return no_content()


def register_view(state: State, call: Call) -> Answer:
    """Register a view with an existing metadata file, as a new version of it."""
    document = call.document()
    name = levels((*call.namespace, document.get("name")), "view")
    location = typed(document.get("metadata-location"), str, "metadata-location")
    state.check_file(name, location)  # before it is read
    with stated_by_the_client():
        metadata = decode_view_metadata(state.catalog.io.read_metadata(location), location)
    state.check_made(name, metadata)
    return _created(state, name, metadata)


def _created(state: State, name: tuple[str, ...], metadata: ViewMetadata) -> Answer:
    """Create a view, and answer with it. It is not loaded afterwards, so that a completed creation cannot fail."""
    backend = _backend(state)
    committed = backend.commit_view(name, None, ViewProposal(metadata, view_creation_updates(metadata)))
    if committed is None:
        raise ViewExists(f"view {'.'.join(name)} exists already in catalog '{state.catalog.name}'", view=name)
    return _answer(View(backend, name, committed))


def _backend(state: State) -> ViewCatalog:
    """The backend of the catalog; without views the routes lead to no handler of views."""
    assert isinstance(state.catalog.backend, ViewCatalog)
    return state.catalog.backend


def _answer(view: View) -> Answer:
    body = {
        "metadata-location": view.metadata_location,
        "metadata": msgspec.Raw(encode_view_metadata(view.metadata)),
        "config": {},
    }
    return Answer(body=msgspec.json.encode(body))
