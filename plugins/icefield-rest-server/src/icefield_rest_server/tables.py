"""The endpoints of tables."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import Any

import msgspec
from icefield import FileIO, Schema, Table
from icefield.errors import (
    IcefieldError,
    InvalidArgument,
    LocationInUse,
    NoSuchTable,
    NotSupportedByCatalog,
    TableExists,
)
from icefield.metadata import (
    TableMetadata,
    TableRequirement,
    TableUpdate,
    decode_metadata,
    requirements_from_json,
    updates_from_json,
)
from icefield.partitioning import UNPARTITIONED, UNSORTED, sort_order_from_json, spec_from_json
from icefield.schema import schema_from_json
from icefield.toolkit import decodable
from icefield.transaction import Transaction

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
from icefield_rest_server.owned import owned_files
from icefield_rest_server.places import disk_path, stated_folders
from icefield_rest_server.signing import signing_properties
from icefield_rest_server.state import Loaded, State, credentials_body, etag_of, is_held, only_of_refs, table_body

_log = logging.getLogger(__name__)

_DELEGATION = "x-iceberg-access-delegation"
_WITH_CREDENTIALS = frozenset({"createTable", "registerTable", "updateTable"})

_Opening = tuple[list[tuple[str, dict[str, str]]], dict[str, str]]


@decodable
class _Located(msgspec.Struct):
    location: str


def list_tables(state: State, call: Call) -> Answer:
    """List the tables directly in a namespace."""
    name, catalog = call.namespace, state.catalog
    page = listed(
        state, call, lambda: catalog.list_tables(name), lambda **asked: catalog.backend.list_tables(name, **asked)
    )
    return Answer(body={"identifiers": named(name, page.items), "next-page-token": page.next_token})


def create_table(state: State, call: Call) -> Answer:
    """Create a table; a staged creation only returns the metadata for a later commit with ``assert-create``."""
    document = call.document()
    name = levels((*call.namespace, document.get("name")), "table")
    spec = document.get("partition-spec")
    order = document.get("write-order")
    location = document.get("location")
    with stated_by_the_client():
        schema = schema_from_json(document.get("schema"))
        given: dict[str, Any] = {
            "partition_spec": UNPARTITIONED if spec is None else spec_from_json({"spec-id": 0, **_object(spec)}),
            "sort_order": UNSORTED if order is None else sort_order_from_json({"order-id": 1, **_object(order)}),
            "properties": strings(document.get("properties"), "properties"),
            "location": None if not location else typed(location, str, "location"),
        }
    with stated_by_the_client() if location else nullcontext():
        staged = _begun(state, name, schema, given)
        if typed(document.get("stage-create") or False, bool, "stage-create"):
            staged.end()  # the client commits it later
            return _staged(state, call, name, staged.shape)
        try:
            table = staged.commit_transaction()
        except LocationInUse:
            if location:
                raise
            # Another client has meanwhile created a table at the default location.
            table = _begun(state, name, schema, given).commit_transaction()
    return _answer_to_change(state, call, name, state.committed(table.metadata_location, table.metadata))


def _begun(state: State, name: tuple[str, ...], schema: Schema, given: dict[str, Any]) -> Transaction[Table]:
    """Begin the creation of a table that the client may create; without a given location, at a free one."""
    try:
        begun = state.catalog.create_table_transaction(name, schema, **given)
    except LocationInUse:
        state.check_place(name, given["location"])  # before the error names the table at the location
        raise
    try:
        state.check_made(name, begun.shape)
    except BaseException:
        begun.end()
        raise
    return begun


def _staged(state: State, call: Call, name: tuple[str, ...], metadata: TableMetadata) -> Answer:
    """Answer a staged creation. Create the table's folders on a local disk: some engines do not."""
    _make_folders(state.catalog.io, metadata)
    vended, _ = _opening(state, call, name, metadata.location)
    return Answer(body=table_body(state.committed("", metadata), vended, staged=True))


def _make_folders(io: FileIO, metadata: TableMetadata) -> None:
    for folder in stated_folders(metadata):
        with suppress(IcefieldError, OSError):  # the client gets the error when it writes
            if (path := disk_path(io.resolve(folder))) is not None:
                os.makedirs(path, exist_ok=True)


def load_table(state: State, call: Call) -> Answer:
    """Load a table at its current version; status 304 if the client has the version already."""
    mode = call.query.get("snapshots", "all").lower()
    if mode not in ("all", "refs"):
        raise InvalidArgument(f"the parameter snapshots is all or refs, not '{mode:.40}'")
    name = call.name("table")
    loaded = state.loaded(name)
    etag = etag_of(loaded, mode)
    if is_held(call, etag):
        return Answer(304, headers={"ETag": etag})
    answer = _answer(state, call, name, only_of_refs(loaded) if mode == "refs" else loaded)
    return Answer(answer.status, answer.body, {"ETag": etag})


def table_exists(state: State, call: Call) -> Answer:
    """Check that a table exists."""
    name = call.name("table")
    if not state.catalog.table_exists(name):
        raise NoSuchTable(f"no table {'.'.join(name)} in catalog '{state.catalog.name}'", table=name)
    return no_content()


def commit_table(state: State, call: Call) -> Answer:
    """Apply updates to a table if the requirements hold; with ``assert-create``, create the table."""
    document, name = call.document(), call.name("table")
    stated = document.get("identifier")
    if stated is not None and identifier(stated, "identifier") != name:
        raise InvalidArgument("the identifier in the body is not that of the path")
    check_updates(document.get("updates"))
    strategy = state.catalog.backend.strategy(name)  # asked before: it may fail
    updates, requirements = _change(document)
    judge = state.judge(call, {name: _added(updates)})
    table = state.catalog.commit_table(name, updates, requirements, judge=judge)
    loaded = state.committed(table.metadata_location, table.metadata)
    state.keep(strategy, loaded)
    return _answer_to_change(state, call, name, loaded)


def _added(updates: Iterable[TableUpdate]) -> set[int]:
    """The snapshots that a change adds."""
    return {update.snapshot.snapshot_id for update in updates if update.action == "add-snapshot"}  # type: ignore[attr-defined]


def _change(document: dict[str, Any]) -> tuple[tuple[TableUpdate, ...], tuple[TableRequirement, ...]]:
    """The updates and requirements of a change."""
    with stated_by_the_client():
        updates = updates_from_json(document.get("updates"))
        return updates, requirements_from_json(document.get("requirements") or [])


def drop_table(state: State, call: Call) -> Answer:
    """Drop a table, with its own files if requested; other files that its manifests name stay."""
    name = call.name("table")
    if not call.flag("purgeRequested"):
        state.catalog.drop_table(name)
        return no_content()
    loaded = state.loaded(name)
    owned = owned_files(state, name, loaded.metadata)
    io = state.catalog.io.for_table(loaded.metadata.location, loaded.config).deleting_only(owned.of)
    state.catalog.drop_table(name, purge=True, io=io)
    return no_content()


def unregister_table(state: State, call: Call) -> Answer:
    """Remove a table from the catalog and keep its files. Answers with the location of its metadata."""
    name = call.name("table")
    loaded = state.loaded(name)
    state.catalog.drop_table(name)
    return Answer(body=table_body(loaded))


def register_table(state: State, call: Call) -> Answer:
    """Register a table with an existing metadata file."""
    document = call.document()
    name = levels((*call.namespace, document.get("name")), "table")
    overwrite = typed(document.get("overwrite") or False, bool, "overwrite")
    location = typed(document.get("metadata-location"), str, "metadata-location")
    try:
        with stated_by_the_client():
            if state.settings.authorizer is not None:
                state.check_file(name, location)  # before it is read
                state.check_made(name, decode_metadata(state.catalog.io.read_metadata(location), location))
            table = state.catalog.register_table(name, location)
    except TableExists as error:
        if not overwrite:
            raise
        message = f"a table cannot be registered over another: drop {'.'.join(name)} first, without purging it"
        raise NotSupportedByCatalog(message, table=name) from error
    return _answer_to_change(state, call, name, state.committed(table.metadata_location, table.metadata))


def rename_table(state: State, call: Call) -> Answer:
    """Rename a table. It is not loaded afterwards, so that a completed rename cannot fail."""
    state.catalog.backend.rename_table(*renaming(call))
    return no_content()


def load_credentials(state: State, call: Call) -> Answer:
    """Answer with credentials for a table's files."""
    name = call.name("table")
    vended = state.vended(call.principal, name, state.loaded(name).metadata.location)
    return Answer(
        body={"storage-credentials": [{"prefix": prefix, "config": properties} for prefix, properties in vended]}
    )


def commit_transaction(state: State, call: Call) -> Answer:
    """Change several tables in one step."""
    changes = typed(call.document().get("table-changes"), list[dict[str, Any]], "table-changes")
    if not changes:
        raise InvalidArgument("'table-changes' is empty")
    check_updates(*(change.get("updates") for change in changes))
    given = [(identifier(change.get("identifier"), "identifier"), *_change(change)) for change in changes]
    judge = state.judge(call, {name: _added(updates) for name, updates, _ in given})
    state.catalog.commit_tables(given, judge=judge)
    return no_content()


def committed_before(state: State, call: Call) -> tuple[Answer | None, bool]:
    """Return the answer to a commit that the tables show as done, and whether they can show it.

    The tables can show it if each change adds snapshots, since no other change has the same snapshot ids.
    """
    document = call.document()
    if call.operation == "updateTable":
        changes = [(call.name("table"), document)]
    elif call.operation == "commitTransaction":
        given = typed(document.get("table-changes"), list[dict[str, Any]], "table-changes")
        changes = [(identifier(change.get("identifier"), "identifier"), change) for change in given]
    else:
        return None, False
    last, done = None, True
    for name, change in changes:
        added = _added(_change(change)[0])
        if not added:
            return None, False
        with suppress(NoSuchTable):
            last = state.loaded(name)
        done = done and last is not None and all(last.metadata.snapshot_by_id(each) is not None for each in added)
    if not done or last is None:
        return None, True
    if call.operation != "updateTable":
        return no_content(), True
    return _answer_to_change(state, call, changes[0][0], last), True


def without_credentials(answer: Answer) -> Answer:
    """Return an answer without credentials, to keep."""
    if not isinstance(answer.body, bytes) or b'"storage-credentials"' not in answer.body:
        return answer
    body = msgspec.json.decode(answer.body, type=dict[str, msgspec.Raw])
    if "storage-credentials" not in body:
        return answer
    del body["storage-credentials"]
    body["config"] = msgspec.Raw(b"{}")
    return replace(answer, body=msgspec.json.encode(body))


def vended_again(state: State, call: Call, answer: Answer) -> Answer:
    """Return a kept answer with new credentials."""
    if call.operation not in _WITH_CREDENTIALS or answer.status != 200:
        return answer
    body = msgspec.json.decode(answer.encoded(), type=dict[str, msgspec.Raw])
    name = call.name("table") if "table" in call.parts else (*call.namespace, str(call.document().get("name")))
    location = msgspec.json.decode(body["metadata"], type=_Located).location
    opening = _opening_if_any(state, call, name, location)
    return replace(answer, body=msgspec.json.encode({**body, **credentials_body(*opening)}))


def _answer(state: State, call: Call, name: tuple[str, ...], loaded: Loaded) -> Answer:
    return _with_opening(loaded, _opening(state, call, name, loaded.metadata.location))


def _answer_to_change(state: State, call: Call, name: tuple[str, ...], loaded: Loaded) -> Answer:
    """Answer a completed change. After that, no failure may make the client believe that the change failed."""
    return _with_opening(loaded, _opening_if_any(state, call, name, loaded.metadata.location))


def _with_opening(loaded: Loaded, opening: _Opening) -> Answer:
    return Answer(body=table_body(loaded, *opening), headers={"ETag": etag_of(loaded, "all")})


def _opening(state: State, call: Call, name: tuple[str, ...], location: str) -> _Opening:
    """Return credentials for a table's files and properties for signed requests, if the client asked for them."""
    asked = call.headers.get(_DELEGATION, "")
    vended = state.vended(call.principal, name, location) if "vended-credentials" in asked else []
    return vended, signing_properties(state, call, name, location)


def _opening_if_any(state: State, call: Call, name: tuple[str, ...], location: str) -> _Opening:
    """Like ``_opening``, but empty on failure: the client can request credentials again without repeating a change."""
    try:
        return _opening(state, call, name, location)
    except Exception:
        _log.exception("%s of %s is answered without what opens its files", call.operation, ".".join(name))
        return [], {}


def _object(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InvalidArgument("a partition spec and a sort order are objects")
    return given
