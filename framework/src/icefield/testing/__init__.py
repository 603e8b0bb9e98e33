"""The kit for plugin authors: a suite for each contract, subclassed in a dozen lines.

Needs the extra ``icefield[testing]`` (pytest and Hypothesis). A check is skipped only by a declared ability. The end of
each check's docstring states what to look at when it fails.
"""

from icefield.builtin.local import LocalFileSystem
from icefield.builtin.memory import MemoryFileSystem
from icefield.manifest.schemas import entry_schema, manifest_list_schema
from icefield.testing.base import Suite
from icefield.testing.behaviour import ReturnChecks, TableBehaviourSuite
from icefield.testing.catalog import CatalogSuite
from icefield.testing.commit_strategy import CommitStrategySuite
from icefield.testing.faults import Crash, FaultyFileSystem
from icefield.testing.file_format import FileFormatSuite, ManifestFormatSuite
from icefield.testing.file_system import FileSystemSuite
from icefield.testing.format_data import sample_tables, tables
from icefield.testing.recording import RecordingServer
from icefield.testing.service_faults import LossyCalls, LossyProxy, RequestFaults

__all__ = [
    "CatalogSuite",
    "CommitStrategySuite",
    "Crash",
    "FaultyFileSystem",
    "FileFormatSuite",
    "FileSystemSuite",
    "LocalFileSystem",
    "LossyCalls",
    "LossyProxy",
    "ManifestFormatSuite",
    "MemoryFileSystem",
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
