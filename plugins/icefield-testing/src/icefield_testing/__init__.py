"""The kit for plugin authors: a suite for each contract, subclassed in a dozen lines.

The kit skips a check only for a stated reason, such as an ability that the plugin does not declare. The docstring of
each check states the place to look at when the check fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield import lazy_names

if TYPE_CHECKING:
    from icefield.manifest import entry_schema, manifest_list_schema

    from icefield_testing.base import Suite, new_in
    from icefield_testing.behaviour import ReturnChecks, TableBehaviourSuite
    from icefield_testing.catalog import CatalogSuite
    from icefield_testing.commit_strategy import CommitStrategySuite
    from icefield_testing.faults import Crash, FaultyFileSystem
    from icefield_testing.file_format import FileFormatSuite, ManifestFormatSuite
    from icefield_testing.file_system import FileSystemSuite
    from icefield_testing.format_data import sample_tables, tables
    from icefield_testing.key_service import KeyServiceSuite
    from icefield_testing.listener import ListenerSuite
    from icefield_testing.recording import RecordingServer
    from icefield_testing.service_faults import LossyCalls, LossyProxy, RequestFaults

# Names are imported lazily: each process that lists plugins imports this package for its hooks.
__getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CatalogSuite",
    "CommitStrategySuite",
    "Crash",
    "FaultyFileSystem",
    "FileFormatSuite",
    "FileSystemSuite",
    "KeyServiceSuite",
    "ListenerSuite",
    "LossyCalls",
    "LossyProxy",
    "ManifestFormatSuite",
    "RecordingServer",
    "RequestFaults",
    "ReturnChecks",
    "Suite",
    "TableBehaviourSuite",
    "entry_schema",
    "manifest_list_schema",
    "new_in",
    "sample_tables",
    "tables",
]
