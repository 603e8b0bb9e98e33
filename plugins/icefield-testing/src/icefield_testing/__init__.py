"""The kit for plugin authors: a suite for each contract, subclassed in a dozen lines.

Only a declared ability makes the kit skip a check. The docstring of each check states the place to look at when the
check fails.
"""

from icefield.manifest import entry_schema, manifest_list_schema

from icefield_testing.base import Suite
from icefield_testing.behaviour import ReturnChecks, TableBehaviourSuite
from icefield_testing.catalog import CatalogSuite
from icefield_testing.commit_strategy import CommitStrategySuite
from icefield_testing.faults import Crash, FaultyFileSystem
from icefield_testing.file_format import FileFormatSuite, ManifestFormatSuite
from icefield_testing.file_system import FileSystemSuite
from icefield_testing.format_data import sample_tables, tables
from icefield_testing.recording import RecordingServer
from icefield_testing.service_faults import LossyCalls, LossyProxy, RequestFaults

__all__ = [
    "CatalogSuite",
    "CommitStrategySuite",
    "Crash",
    "FaultyFileSystem",
    "FileFormatSuite",
    "FileSystemSuite",
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
    "sample_tables",
    "tables",
]
