"""Log lines about operations, from the events that listeners hear.

The logger ``icefield`` says at level INFO which scans were planned and what was committed, and at level DEBUG which
operations ran.
"""

from __future__ import annotations

import logging
from typing import Final

from icefield.abc import events

LOG: Final = logging.getLogger("icefield")

_COUNTS: Final = ("added-data-files", "added-records", "deleted-data-files", "deleted-records", "added-delete-files")


def log_event(event: events.Event) -> None:
    """Write the log line of an event, if it has one."""
    if isinstance(event, events.ScanPlanned):
        LOG.info(
            "planned a scan of %s in %.3f s: %d files and %d skipped; %d manifests read and %d skipped",
            ".".join(event.table),
            event.seconds,
            event.files_planned,
            event.files_skipped,
            event.manifests_read,
            event.manifests_skipped,
        )
        LOG.debug("the scan of %s had the filter: %s", ".".join(event.table), event.row_filter)
    elif isinstance(event, events.CommitMade):
        counts = ", ".join(f"{name} {event.summary[name]}" for name in _COUNTS if name in event.summary)
        LOG.info(
            "committed %s to %s in %.3f s, attempt %d: snapshot %s%s",
            event.operation or "metadata",
            ".".join(event.table),
            event.seconds,
            event.attempts,
            event.snapshot_id,
            f"; {counts}" if counts else "",
        )
    elif isinstance(event, events.CommitConflict):
        LOG.info("attempt %d to commit to %s lost to another commit", event.attempt, ".".join(event.table))
    elif isinstance(event, events.OperationFinished):
        LOG.debug("%s of %s took %.3f s", event.operation, ".".join(event.name), event.seconds)
    elif isinstance(event, events.OperationFailed):
        error = type(event.error).__name__
        LOG.debug("%s of %s failed after %.3f s: %s", event.operation, ".".join(event.name), event.seconds, error)
    elif isinstance(event, events.MaintenanceProgress):
        LOG.debug("%s of %s: %s, %d done", event.operation, ".".join(event.table), event.step, event.done)
