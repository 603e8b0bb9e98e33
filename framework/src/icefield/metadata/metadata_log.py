"""The metadata log: which files held the table's former versions."""

from __future__ import annotations

from dataclasses import replace

from icefield.metadata.entries import MetadataLogEntry
from icefield.metadata.properties import METADATA_PREVIOUS_VERSIONS_MAX, get_int
from icefield.metadata.table_metadata import TableMetadata


def with_metadata_log(metadata: TableMetadata, previous_location: str, previous_last_updated_ms: int) -> TableMetadata:
    """The metadata with the file that it replaces at the end of its log.

    Entries beyond ``write.metadata.previous-versions-max`` fall out at the front; one is always kept. Calling it
    again for the same file changes nothing, so that a retried commit may.
    """
    entries = metadata.metadata_log.records
    if entries and entries[-1].metadata_file == previous_location:
        return metadata
    log = metadata.metadata_log.extended([MetadataLogEntry(previous_last_updated_ms, previous_location)])
    kept = max(1, get_int(metadata.properties, METADATA_PREVIOUS_VERSIONS_MAX))
    return replace(metadata, metadata_log=log.kept(range(max(0, len(log) - kept), len(log))))
