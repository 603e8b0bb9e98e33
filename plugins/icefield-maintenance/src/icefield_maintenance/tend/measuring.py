"""The measured effect of an operation, from its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from icefield.metadata import LONG_MAX

from icefield_maintenance.compaction import RewriteDataFilesResult
from icefield_maintenance.deletes import ConvertEqualityDeletesResult, RemoveDanglingDeletesResult, RewriteDeletesResult
from icefield_maintenance.manifests import RewriteManifestsResult


def _of_data_files(result: RewriteDataFilesResult) -> dict[str, Any]:
    found: dict[str, Any] = {
        "measured_requests": result.rewritten_data_files - result.added_data_files,
        "measured_bytes": result.rewritten_bytes - result.added_bytes,
        "rewritten_bytes": result.rewritten_bytes,
    }
    if result.failed_groups:
        message = f"{result.failed_data_files} data files were changed meanwhile, or could not be read; see the log"
        found |= {"outcome": "lost", "message": message}
    return found


def _of_equality_deletes(result: ConvertEqualityDeletesResult) -> dict[str, Any]:
    added = result.added_position_delete_files + result.added_deletion_vectors
    return {
        "measured_requests": result.converted_equality_delete_files - added,
        "measured_bytes": result.converted_bytes - result.added_bytes,
        "rewritten_bytes": result.converted_bytes + result.read_bytes,
    }


def _of_position_deletes(result: RewriteDeletesResult) -> dict[str, Any]:
    before = result.rewritten_position_delete_files + result.rewritten_puffin_files
    return {
        "measured_requests": before - result.added_position_delete_files - result.added_puffin_files,
        "measured_bytes": result.rewritten_bytes - result.added_bytes,
        "rewritten_bytes": result.rewritten_bytes,
    }


def _of_dangling_deletes(result: RemoveDanglingDeletesResult) -> dict[str, Any]:
    files = result.removed_position_delete_files + result.removed_deletion_vectors
    return {
        "measured_requests": files + result.removed_equality_delete_files,
        "measured_bytes": result.removed_bytes,
    }


def _of_manifests(result: RewriteManifestsResult) -> dict[str, Any]:
    return {
        "measured_requests": result.rewritten_manifests - result.added_manifests,
        "measured_bytes": result.rewritten_bytes - result.added_bytes,
        "rewritten_bytes": result.rewritten_bytes,
    }


_MEASURES: Final[Mapping[type, Callable[[Any], dict[str, Any]]]] = {
    RewriteDataFilesResult: _of_data_files,
    ConvertEqualityDeletesResult: _of_equality_deletes,
    RewriteDeletesResult: _of_position_deletes,
    RemoveDanglingDeletesResult: _of_dangling_deletes,
    RewriteManifestsResult: _of_manifests,
}


def measured(result: object) -> dict[str, Any]:
    """The fields of a ``TendedOperation`` that follow from a result; none for an operation that changes no scan."""
    measure = _MEASURES.get(type(result))
    found = {} if measure is None else measure(result)
    # Manifests may state any sizes, and the record has longs.
    return {key: max(-LONG_MAX, min(each, LONG_MAX)) if isinstance(each, int) else each for key, each in found.items()}
