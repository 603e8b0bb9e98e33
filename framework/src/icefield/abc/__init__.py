"""The contracts: all that a plugin author reads."""

from icefield.abc.access import FileAccess, UnsignedRequest
from icefield.abc.catalog import CatalogAbility, CatalogBackend, NamespaceName, NewTable, Page, TableName
from icefield.abc.commit import CommitStrategy, Committed, Conflict, Current, Pointer, Proposal, TableChange
from icefield.abc.events import CommitConflict, CommitMade, Event, MetricsReported, ScanPlanned, UpkeepProgress
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
from icefield.abc.manifest_format import ManifestFormat, ManifestFormatReader, ManifestReadRequest
from icefield.abc.scans import ListedFile, ListedFiles, ScanAsked, ScanListing, ScanService
from icefield.abc.storage import Storage
from icefield.abc.views import CurrentView, ViewProposal
from icefield.abc.work import Attempt, Done, Note, Traces, Work, WorkRunner

__all__ = [
    "Attempt",
    "CatalogAbility",
    "CatalogBackend",
    "CommitConflict",
    "CommitMade",
    "CommitStrategy",
    "Committed",
    "Conflict",
    "Current",
    "CurrentView",
    "Done",
    "Event",
    "FileAccess",
    "FileFormat",
    "FileInfo",
    "FileSystem",
    "FileSystemAbility",
    "FormatAbility",
    "FormatReader",
    "FormatWriter",
    "InputFile",
    "ListedFile",
    "ListedFiles",
    "ManifestFormat",
    "ManifestFormatReader",
    "ManifestReadRequest",
    "MetricsReported",
    "NamespaceName",
    "NewTable",
    "Note",
    "OutputStream",
    "Page",
    "Pointer",
    "Proposal",
    "PutMode",
    "ReadRequest",
    "ScanAsked",
    "ScanListing",
    "ScanPlanned",
    "ScanService",
    "Split",
    "Storage",
    "TableChange",
    "TableName",
    "Traces",
    "UnsignedRequest",
    "UpkeepProgress",
    "ViewProposal",
    "Work",
    "WorkRunner",
    "WrittenFile",
]
