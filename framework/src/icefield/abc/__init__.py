"""The contracts: all that a plugin author reads."""

from icefield.abc.catalog import CatalogBackend, NamespaceName, Page, TableName
from icefield.abc.commit import CommitStrategy, Committed, Conflict, Pointer
from icefield.abc.events import CommitConflict, CommitMade, Event, ScanPlanned
from icefield.abc.file_format import (
    FileFormat,
    FormatAbility,
    FormatReader,
    FormatWriter,
    ReadRequest,
    Split,
    WrittenFile,
)
from icefield.abc.file_system import (
    FileInfo,
    FileSystem,
    FileSystemAbility,
    InputFile,
    OutputStream,
    PutMode,
)
from icefield.abc.fsspec_file_system import FsspecFileSystem
from icefield.abc.options import is_true, whole_number
from icefield.abc.parted_output import PartedOutput
from icefield.abc.ranged_input import FetchedRange, RangedInput
from icefield.abc.shared_clients import SharedClients

__all__ = [
    "CatalogBackend",
    "CommitConflict",
    "CommitMade",
    "CommitStrategy",
    "Committed",
    "Conflict",
    "Event",
    "FetchedRange",
    "FileFormat",
    "FileInfo",
    "FileSystem",
    "FileSystemAbility",
    "FormatAbility",
    "FormatReader",
    "FormatWriter",
    "FsspecFileSystem",
    "InputFile",
    "NamespaceName",
    "OutputStream",
    "Page",
    "PartedOutput",
    "Pointer",
    "PutMode",
    "RangedInput",
    "ReadRequest",
    "ScanPlanned",
    "SharedClients",
    "Split",
    "TableName",
    "WrittenFile",
    "is_true",
    "whole_number",
]
