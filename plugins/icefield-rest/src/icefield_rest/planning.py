"""Server-side scan planning: plans are requested, awaited, fetched in parts, and cancelled if abandoned."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
from icefield.abc import DataFile, FileAccess, ScanListing, ScanPlanRequest, ScanService, TableName
from icefield.errors import IcefieldError, InvalidArgument, InvalidMetadata, StorageError
from icefield.expressions import AlwaysTrue
from icefield.toolkit import Backoff, SharedClients, decodable, filter_to_json

from icefield_rest.connection import MAX_TABLE, joined
from icefield_rest.endpoints import Endpoint
from icefield_rest.failures import ErrorModel, ServiceRefusal, Uncertain, error_of
from icefield_rest.listed_files import ListedFile, ListedReader, statistics_names
from icefield_rest.service import Service
from icefield_rest.settings import PLANNING, SERVER
from icefield_rest.vended import VendedCredential, vended

_AT_ONCE: Final = 4
_LONGEST_FILTER: Final = 512 * 1024
"""Bytes of JSON. Services refuse long requests; without a filter all files are listed, and all rows filtered here."""
_SERVICES: Final[SharedClients[Service]] = SharedClients()
_LOG: Final = logging.getLogger(__name__)

_Listed = list[tuple[DataFile, tuple[DataFile, ...]]]
"""Data files, each with the delete files that apply to it."""


@decodable
class _Task(msgspec.Struct, rename="kebab", gc=False):
    data_file: ListedFile
    delete_file_references: tuple[int, ...] = ()


@decodable
class _Tasks(msgspec.Struct, rename="kebab"):
    """A part of a plan, and the tasks that fetch further parts."""

    file_scan_tasks: list[_Task] | None = None
    delete_files: list[ListedFile] | None = None
    plan_tasks: list[str] | None = None

    def listed(self, reader: ListedReader, before: Set[str]) -> _Listed:
        """The files of the part, without the locations of ``before``. Raises ``InvalidMetadata``."""
        tasks = [task for task in self.file_scan_tasks or () if task.data_file.file_path not in before]
        found = [task.delete_file_references for task in tasks]
        deletes = reader.delete_files(self.delete_files or []) if any(found) else []
        wrong = next((place for places in found for place in places if not 0 <= place < len(deletes)), None)
        if wrong is not None:
            raise InvalidMetadata(f"the service names delete file {wrong} of a list of {len(deletes)}")
        files = reader.data_files([task.data_file for task in tasks])
        return list(zip(files, [tuple([deletes[place] for place in places]) for places in found], strict=True))


class _PlanResponse(_Tasks, rename="kebab"):
    """A plan with its status: submitted, or its result."""

    status: str = ""
    plan_id: str | None = None
    storage_credentials: list[VendedCredential] | None = None
    error: ErrorModel | None = None


_plan = msgspec.json.Decoder(_PlanResponse)
_tasks = msgspec.json.Decoder(_Tasks)


@dataclass(frozen=True)
class RestScans(ScanService):
    """Scans of one table, planned by the service. ``config`` is the table configuration of the service."""

    service: Service
    table: TableName
    location: str
    config: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    token: str | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        service = self.service
        return _rebuilt, (service.name, service.given, self.table, self.location, self.config, self.token)

    def plan(self, asked: ScanPlanRequest) -> ScanListing:
        what = f"planning a scan of {'.'.join(self.table)}"
        self.service.needs(Endpoint.PLAN, what)
        before = set[str]() if asked.begin is None else self._appended_by(asked.begin, asked, what)
        parts, access = self._planned(asked, what)
        return ScanListing(_listed(parts, ListedReader(asked), before), access)

    def _appended_by(self, snapshot_id: int, asked: ScanPlanRequest, what: str) -> set[str]:
        """Return the files that a service lists from a snapshot to itself.

        By the protocol there are no such files, because a range excludes its first snapshot. Java's reference server
        includes this snapshot, so its files are removed from listings of longer ranges.
        """
        own = replace(asked, begin=snapshot_id, snapshot_id=snapshot_id, statistics=False)
        try:
            parts, _ = self._planned(own, what)
        except InvalidArgument:  # that there is nothing in between
            return set()
        return {task.data_file.file_path for part in parts for task in part.file_scan_tasks or ()}

    def _planned(self, asked: ScanPlanRequest, what: str) -> tuple[Iterator[_Tasks], tuple[FileAccess, ...]]:
        plan: _PlanResponse = self._ask("POST", "plan", what, _plan, body=_body(asked))
        plan_id = plan.plan_id
        if plan.status == "submitted":
            plan = self._waited_for(plan_id, what)
        if plan.status != "completed":
            raise self._failed(plan, what)
        found = plan.storage_credentials or []
        _, access, _ = vended(self.service, self.table, dict(self.config), found, self.location, time.time())
        return self._parts(plan, plan_id, what), access if found else ()

    def _waited_for(self, plan_id: str | None, what: str) -> _PlanResponse:
        """Wait for a submitted plan, and return it. Raises ``StorageError`` if it takes too long."""
        self.service.needs(Endpoint.FETCH_PLAN, what)
        if plan_id is None:
            raise StorageError(f"{what}: the service names no plan to wait for")
        settings = self.service.settings
        waits, end, attempt = Backoff(0.05, 5.0, jitter=0.2), time.monotonic() + settings.planning_timeout, 0
        try:
            while True:
                attempt += 1
                time.sleep(min(waits.wait(attempt), max(0.0, end - time.monotonic())))
                plan: _PlanResponse = self._ask("GET", f"plan/{joined(plan_id)}", what, _plan)
                if plan.status != "submitted":
                    return plan
                if time.monotonic() >= end:
                    raise StorageError(
                        f"{what}: the service has not planned it after {settings.planning_timeout:g} s; "
                        "rest.planning.timeout-ms gives it longer",
                        retryable=True,
                    )
        except BaseException:
            self._cancel(plan_id)
            raise

    def _parts(self, plan: _PlanResponse, plan_id: str | None, what: str) -> Iterator[_Tasks]:
        """Iterate over the parts in the service's order, and prefetch some."""
        if not plan.plan_tasks:
            yield plan
            return
        self.service.needs(Endpoint.FETCH_TASKS, what)
        waiting: deque[Future[_Tasks]] = deque()
        left, known = deque[str](), set[str]()
        pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="icefield-plan")
        part: _Tasks = plan
        try:
            while True:
                for token in part.plan_tasks or ():
                    if token in known:
                        raise StorageError(f"{what}: the service gives the same part of the plan again and again")
                    known.add(token)
                    left.append(token)
                while left and len(waiting) < _AT_ONCE:
                    body = {"plan-task": left.popleft()}
                    waiting.append(pool.submit(self._ask, "POST", "tasks", what, _tasks, body=body))
                yield part
                if not waiting:
                    return
                part = waiting.popleft().result()
        except BaseException as error:
            if plan_id is not None and (left or waiting or not isinstance(error, GeneratorExit)):
                self._cancel(plan_id)
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, method: str, path: str, what: str, decoder: msgspec.json.Decoder[Any], *, body: Any = None) -> Any:
        url = f"{self.service.table_path(self.table)}/{path}"
        ask = self.service.connection.ask
        try:
            answer = ask(method, url, what, body=body, token=self.token, limit=MAX_TABLE, repeatable=True)
        except ServiceRefusal as refused:
            raise error_of(refused, what) from refused
        except Uncertain as error:
            raise StorageError(f"{what}: {error}", retryable=True) from error
        return answer.decoded(decoder, what)

    def _cancel(self, plan_id: str) -> None:
        """Cancel a plan at the service. Errors are only logged."""
        if not self.service.has(Endpoint.CANCEL_PLAN):
            return
        path = f"{self.service.table_path(self.table)}/plan/{joined(plan_id)}"
        try:
            self.service.connection.ask("DELETE", path, "cancelling a plan", token=self.token, repeatable=True)
        except (ServiceRefusal, Uncertain, IcefieldError) as error:
            _LOG.debug("a plan was not cancelled: %s", type(error).__name__)

    def _failed(self, plan: _PlanResponse, what: str) -> IcefieldError:
        if plan.status == "failed" and plan.error is not None:
            shown = self.service.connection.hidden(plan.error, self.token)
            return error_of(ServiceRefusal(_status(plan.error), shown, modelled=True), what)
        if plan.status in ("failed", "cancelled"):
            return StorageError(f"{what}: the service says that the plan is {plan.status}", retryable=True)
        return StorageError(f"{what}: the service gives a plan of the unknown status '{plan.status[:40]}'")


def _status(error: ErrorModel) -> int:
    """The status that the error of a plan states; 500 if it states none."""
    stated = str(error.code)
    return int(stated) if stated.isascii() and stated.isdigit() and len(stated) == 3 else 500


def scans_of(
    service: Service, table: TableName, location: str, config: Mapping[str, str], token: str | None
) -> RestScans | None:
    """Return the scan planning of a table, if the service or the user enables it; the service's setting wins."""
    mode = config.get(PLANNING) or service.properties.get(PLANNING, "")
    if mode.lower() != SERVER:
        return None
    return RestScans(service, table, location, tuple(sorted(config.items())), token)


def _rebuilt(name: str, given: Mapping[str, str], *rest: Any) -> RestScans:
    """Rebuild the scans in another process, with a connection of its own."""
    key = (name, tuple(sorted(given.items())))
    return RestScans(_SERVICES.get(key, lambda: Service(name, given)), *rest)


def _listed(parts: Iterator[_Tasks], reader: ListedReader, before: Set[str]) -> Iterator[_Listed]:
    """The files of the parts, without the locations of ``before``."""
    with closing(parts):  # type: ignore[type-var]
        for part in parts:
            yield part.listed(reader, before)


def _body(asked: ScanPlanRequest) -> dict[str, Any]:
    body: dict[str, Any] = {
        **(
            {"snapshot-id": asked.snapshot_id}
            if asked.begin is None
            else {"start-snapshot-id": asked.begin, "end-snapshot-id": asked.snapshot_id}
        ),
        "case-sensitive": asked.case_sensitive,
        "use-snapshot-schema": asked.of_snapshot,
    }
    if asked.columns:
        body["select"] = list(asked.columns)
    if not isinstance(asked.row_filter, AlwaysTrue):
        try:
            written = filter_to_json(asked.row_filter)
        except InvalidArgument:  # a value that JSON cannot hold: all files are listed, and all rows filtered here
            written = None
        if written is not None and len(msgspec.json.encode(written)) <= _LONGEST_FILTER:
            body["filter"] = written
    if asked.statistics:
        body["stats-fields"] = statistics_names(asked.schema)
    if asked.limit is not None and asked.begin is None:
        body["min-rows-requested"] = asked.limit
    return body
