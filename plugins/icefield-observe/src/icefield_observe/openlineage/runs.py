"""The run of a job: this process, with the tables that it reads and writes."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

from icefield.abc import CommitMade, Event, OperationFailed, OperationFinished, OperationStarted, ScanPlanned
from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
from openlineage.client.generated.error_message_run import ErrorMessageRunFacet
from openlineage.client.generated.job_type_job import JobTypeJobFacet
from openlineage.client.generated.parent_run import Job as ParentJob
from openlineage.client.generated.parent_run import ParentRunFacet
from openlineage.client.generated.parent_run import Run as ParentRun
from openlineage.client.generated.processing_engine_run import ProcessingEngineRunFacet

from icefield_observe.openlineage.datasets import input_of, output_of
from icefield_observe.openlineage.queues import EventQueue

PRODUCER: Final = "https://pypi.org/project/icefield-observe"

_LONGEST_MESSAGE: Final = 1_000
_NEW: Final = ("create-table", "register-table")


@dataclass(frozen=True)
class Parent:
    """The run of an orchestrator that started this process."""

    namespace: str
    job: str
    run_id: str


class RunOfProcess:
    """Sends the start and the end of a run, and between them the tables of each scan and each commit.

    A process that was forked is no owner of the run: it sends neither the start nor the end.
    """

    def __init__(
        self,
        emit: Callable[[Any], Any],
        run_id: str,
        *,
        namespace: str,
        job: str,
        catalog_namespace: str | None = None,
        parent: Parent | None = None,
        is_owner: bool = True,
    ) -> None:
        self._run_id, self._catalog_namespace = run_id, catalog_namespace
        kind = JobTypeJobFacet("BATCH", "ICEFIELD", "JOB", producer=PRODUCER)
        self._job = Job(namespace, job, {"jobType": kind})
        engine = ProcessingEngineRunFacet(
            version("icefield"), "Icefield", version("icefield-observe"), producer=PRODUCER
        )
        self._facets: dict[str, Any] = {"processing_engine": engine}
        if parent is not None:
            of = ParentRun(parent.run_id), ParentJob(parent.namespace, parent.job)
            self._facets["parent"] = ParentRunFacet(*of, producer=PRODUCER)
        self._new: set[tuple[str | None, tuple[str, ...]]] = set()
        self._process = os.getpid()
        self._queue = EventQueue(emit, "icefield-openlineage")
        self._is_owner = is_owner
        if is_owner:
            self._send(RunState.START)
        atexit.register(self._end)

    def hear(self, event: Event) -> None:
        """Send the table of a scan or a commit."""
        if isinstance(event, ScanPlanned):
            self._send(RunState.RUNNING, scan=event)
        elif isinstance(event, CommitMade):
            self._send(RunState.RUNNING, commit=event, is_new=(event.catalog, event.table) in self._new)
        elif isinstance(event, OperationStarted) and event.operation in _NEW:
            self._new.add((event.catalog, event.name))
        elif isinstance(event, OperationFinished | OperationFailed) and event.operation in _NEW:
            self._new.discard((event.catalog, event.name))

    def flush(self) -> bool:
        """Wait until the events so far are sent, for two seconds at most. Return whether they are."""
        return self._queue.flush()

    def _end(self) -> None:
        """Send the end of the run: a failure if an error ended the program. A fork of this process sends none."""
        if os.getpid() != self._process:
            return
        if self._is_owner:
            error = None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)
            self._send(RunState.COMPLETE if error is None else RunState.FAIL, error=error)
        self._queue.flush()

    def _send(
        self,
        state: RunState,
        *,
        scan: ScanPlanned | None = None,
        commit: CommitMade | None = None,
        is_new: bool = False,
        error: BaseException | None = None,
    ) -> None:
        """Queue an event. The thread of the queue makes it, as the schemas of wide tables take their time."""
        at = datetime.now(UTC).isoformat()
        said = None if error is None else f"{type(error).__name__}: {error}"[:_LONGEST_MESSAGE]

        def made() -> RunEvent:
            facets = dict(self._facets)
            if said is not None:
                facets["errorMessage"] = ErrorMessageRunFacet(said, "python", producer=PRODUCER)
            return RunEvent(
                eventTime=at,
                eventType=state,
                run=Run(self._run_id, facets),
                job=self._job,
                inputs=[] if scan is None else [input_of(scan, self._catalog_namespace, PRODUCER)],
                outputs=[] if commit is None else [output_of(commit, self._catalog_namespace, is_new, PRODUCER)],
                producer=PRODUCER,
            )

        self._queue.put(made)
