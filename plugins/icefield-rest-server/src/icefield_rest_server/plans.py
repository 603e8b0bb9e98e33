"""The endpoints of scan planning. The server keeps no state between requests: a token holds the rest of a plan."""

from __future__ import annotations

import binascii
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import msgspec
from icefield.errors import InvalidArgument, NoSuchSnapshot
from icefield.expressions import AlwaysTrue, BooleanExpression, bind
from icefield.metadata import TableMetadata
from icefield.scan import IncrementalAppendScan, PlannedManifest, SnapshotRange, TableScan
from icefield.schema import Schema
from icefield.toolkit import decodable, filter_to_json, lazy

from icefield_rest_server.answers import Answer, Refused, no_content
from icefield_rest_server.bodies import check_shape
from icefield_rest_server.calls import Call, typed
from icefield_rest_server.filters import check_size, filter_from_json
from icefield_rest_server.scan_tasks import TaskWriter
from icefield_rest_server.state import Loaded, State

_MAX_REQUEST: Final = 1024 * 1024
_MAX_TASK: Final = _MAX_REQUEST + 1024
_MAX_ANSWER: Final = 32 * 1024 * 1024
_OF_STATISTICS: Final = 150
_MAX_PLAN_ID: Final = 8000
_MAX_PLACE: Final = 2**31
_MAX_DEPTH: Final = 100
_DELEGATION: Final = "x-iceberg-access-delegation"


@decodable
class ScanRequest(msgspec.Struct, rename="kebab", omit_defaults=True, frozen=True):
    """A client's request for a plan."""

    snapshot_id: int | None = None
    select: list[str] | None = None
    filter: Any = None
    case_sensitive: bool = True
    use_snapshot_schema: bool = False
    start_snapshot_id: int | None = None
    end_snapshot_id: int | None = None
    stats_fields: list[str] | None = None
    min_rows_requested: int | None = None

    def check(self) -> None:
        """Raise ``InvalidArgument`` for versions that do not go together, and for a filter of too many parts."""
        if (self.start_snapshot_id is None) != (self.end_snapshot_id is None):
            raise InvalidArgument("an incremental plan has both 'start-snapshot-id' and 'end-snapshot-id'")
        if self.snapshot_id is not None and self.start_snapshot_id is not None:
            raise InvalidArgument("a plan is of 'snapshot-id', or from 'start-snapshot-id' to 'end-snapshot-id'")
        check_size(self.filter)

    def range(self) -> SnapshotRange | None:
        """The snapshots of an incremental plan; None for a plan of one snapshot."""
        if self.start_snapshot_id is None:
            return None
        return SnapshotRange(from_exclusive=self.start_snapshot_id, to_inclusive=self.end_snapshot_id)


@decodable
class PlanTask(msgspec.Struct, frozen=True):
    """The rest of a plan, from one file of a manifest on, with its table, schema, request and client."""

    table: str
    who: str
    schema_id: int
    manifest: int
    first: int
    request: ScanRequest

    def token(self) -> str:
        """The task as a string for the client."""
        return urlsafe_b64encode(zlib.compress(msgspec.json.encode(self))).rstrip(b"=").decode()

    def plan_id(self) -> str:
        """The id of the plan: its token, if the token fits into a path."""
        token = self.token()
        return token if len(token) <= _MAX_PLAN_ID else sha256(msgspec.json.encode(self)).hexdigest()


@dataclass(frozen=True)
class _VersionScan(TableScan):
    """A scan of a snapshot with a schema that need not be its own."""

    pinned: Schema | None = None

    @lazy
    def schema(self) -> Schema:
        return self.pinned or self.metadata.schema()


@dataclass(frozen=True)
class _Appends(IncrementalAppendScan):
    """An incremental append scan with a schema that need not be the current one."""

    pinned: Schema | None = None

    @lazy
    def schema(self) -> Schema:
        return self.pinned or self.metadata.schema()


def plan_table_scan(state: State, call: Call) -> Answer:
    """Plan a scan at once: answer with the first files, and a task for the others."""
    request: ScanRequest = typed(call.document(), ScanRequest, "the request")
    request.check()
    if len(msgspec.json.encode(request)) > _MAX_REQUEST:
        message = f"a request for a plan has up to {_MAX_REQUEST:,} bytes"
        raise InvalidArgument(f"{message}: leave out a part of the filter, and apply it to the rows")
    name = call.name("table")
    loaded = state.loaded(name)
    plan = _pinned(call, loaded.metadata, request)
    return _completed(state, call, loaded, plan)


def fetch_planning_result(state: State, call: Call) -> Answer:
    """Answer again with the first files of a plan."""
    loaded = state.loaded(call.name("table"))
    plan = _known(call, loaded.metadata, call.parts["plan-id"])
    if plan is None or plan.manifest or plan.first:
        raise _no_plan()
    return _completed(state, call, loaded, plan)


def cancel_planning(state: State, call: Call) -> Answer:
    """Cancel a plan: a no-op, as the server keeps no state for a plan."""
    loaded = state.loaded(call.name("table"))
    if _known(call, loaded.metadata, call.parts["plan-id"]) is None:
        raise _no_plan()
    return no_content()


def fetch_scan_tasks(state: State, call: Call) -> Answer:
    """Answer with the next files of a plan, after the files of the previous answer."""
    token = typed(call.document().get("plan-task"), str, "plan-task")
    loaded = state.loaded(call.name("table"))
    plan = _known(call, loaded.metadata, token)
    if plan is None:
        raise Refused(404, "NoSuchPlanTaskException", "this table has no such plan task; plan the scan again")
    return Answer(body=_tasks(state, call.name("table"), loaded, plan))


def _completed(state: State, call: Call, loaded: Loaded, plan: PlanTask) -> Answer:
    body = {"status": "completed", "plan-id": plan.plan_id(), **_tasks(state, call.name("table"), loaded, plan)}
    if "vended-credentials" in call.headers.get(_DELEGATION, ""):
        vended = state.vended(call.principal, call.name("table"), loaded.metadata.location)
        body["storage-credentials"] = [{"prefix": prefix, "config": properties} for prefix, properties in vended]
    return Answer(body=body)


def _pinned(call: Call, metadata: TableMetadata, request: ScanRequest) -> PlanTask:
    """Return the task of a request, pinned to the snapshot and the schema that it selects now."""
    ended = request.snapshot_id if request.end_snapshot_id is None else request.end_snapshot_id
    snapshot = metadata.current_snapshot() if ended is None else metadata.snapshot_by_id(ended)
    if ended is not None and snapshot is None:
        raise NoSuchSnapshot(f"table {metadata.location} has no snapshot {ended}", snapshot_id=ended)
    if request.start_snapshot_id is None and snapshot is not None:
        request = msgspec.structs.replace(request, snapshot_id=snapshot.snapshot_id)
    of_snapshot = request.use_snapshot_schema and snapshot is not None
    schema = metadata.schema_of(snapshot) if of_snapshot and snapshot is not None else metadata.schema()
    return PlanTask(metadata.table_uuid or "", _who(call), schema.schema_id, 0, 0, request)


def _known(call: Call, metadata: TableMetadata, token: str) -> PlanTask | None:
    """Return the task of a token for this client and table, if its snapshots and its schema still exist."""
    try:
        reader = zlib.decompressobj()
        data = reader.decompress(urlsafe_b64decode(token + "=" * (-len(token) % 4)), _MAX_TASK + 1)
        if len(data) > _MAX_TASK or not reader.eof:
            return None
        check_shape(data, _MAX_DEPTH)
        task = msgspec.json.decode(data, type=PlanTask)
        task.request.check()
    except (ValueError, binascii.Error, zlib.error, msgspec.MsgspecError, RecursionError, InvalidArgument):
        return None
    there = _has_snapshots(metadata, task.request)
    schemas = {schema.schema_id for schema in metadata.schemas}
    mine = task.who == _who(call) and task.table == (metadata.table_uuid or "")
    placed = 0 <= task.manifest < _MAX_PLACE and 0 <= task.first < _MAX_PLACE
    return task if mine and there and task.schema_id in schemas and placed else None


def _has_snapshots(metadata: TableMetadata, request: ScanRequest) -> bool:
    """Whether a table still has the snapshot of a plan, or all snapshots of the plan's range."""
    appended = request.range()
    if appended is None:
        return request.snapshot_id is None or metadata.snapshot_by_id(request.snapshot_id) is not None
    try:
        appended.snapshots(metadata)
    except (NoSuchSnapshot, InvalidArgument):
        return False
    return True


def _tasks(state: State, name: tuple[str, ...], loaded: Loaded, plan: PlanTask) -> dict[str, Any]:
    """Return the files of one answer, from the task's manifest on. The table version determines the order."""
    metadata, request = loaded.metadata, plan.request
    schema = metadata.schema_by_id(plan.schema_id)
    sensitive = request.case_sensitive
    row_filter = AlwaysTrue() if request.filter is None else filter_from_json(request.filter, schema, sensitive)
    statistics = frozenset(schema.find_field(name, sensitive).field_id for name in request.stats_fields or ())
    common: dict[str, Any] = {
        "row_filter": row_filter,
        "selected_fields": tuple(request.select or ("*",)),
        "case_sensitive": sensitive,
        "pinned": schema,
    }
    io = state.io_for_clients(name, loaded)
    scan: TableScan | IncrementalAppendScan
    appended = request.range()
    if appended is None:
        scan = _VersionScan(metadata, io, snapshot_id=request.snapshot_id, **common)
    else:
        scan = _Appends(metadata, io, range=appended, **common)
    _ = scan.projection  # names that are not there are refused here
    most = min(state.settings.max_plan_page, _room(request, bind(schema, row_filter, sensitive), len(statistics)))
    found, more = _page(scan, plan, most, include_stats=bool(statistics))
    body = TaskWriter(metadata, schema, statistics).body(found)
    if more is not None:
        body["plan-tasks"] = [more.token()]
    return body


def _room(request: ScanRequest, row_filter: BooleanExpression, statistics: int) -> int:
    """Return the number of files that fit into an answer, each with its residual and this number of statistics.

    The residual may be the whole filter. It is sent nevertheless: without it, PyIceberg counts all rows of a file.
    """
    try:
        whole = msgspec.json.encode(filter_to_json(row_filter))
    except InvalidArgument:  # with a value that JSON cannot hold
        whole = msgspec.json.encode(request.filter)
    return max(1, _MAX_ANSWER // (len(whole) + statistics * _OF_STATISTICS))


def _page(
    scan: TableScan | IncrementalAppendScan, plan: PlanTask, most: int, *, include_stats: bool
) -> tuple[list[PlannedManifest], PlanTask | None]:
    """Return up to ``most`` files of a plan, and the task for the files after them; None after the last file."""
    found: list[PlannedManifest] = []
    left = most
    parts = scan.plan_manifests(include_stats=include_stats, first=plan.manifest, rows=most)
    with closing(parts) as planned:  # type: ignore[type-var]
        for part in planned:
            begin = plan.first if part.place == plan.manifest else 0
            end = min(len(part), begin + left)
            if begin < end:
                found.append(part.slice(begin, end))
                left -= end - begin
            if end < len(part):
                return found, msgspec.structs.replace(plan, manifest=part.place, first=end)
    return found, None


def _who(call: Call) -> str:
    return "" if call.principal is None else sha256(call.principal.name.encode()).hexdigest()[:16]


def _no_plan() -> Refused:
    return Refused(
        404, "NoSuchPlanIdException", "this table has no such plan, or it was too long to be kept: plan again"
    )
