"""The contracts for plugin authors, with the types in their signatures."""

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
from icefield.abc.scans import (
    ListedFile,
    ListedFiles,
    ListedNumbers,
    ListedValues,
    ScanListing,
    ScanPlanRequest,
    ScanService,
)
from icefield.abc.views import CurrentView, ViewProposal
from icefield.abc.work import Attempt, AttemptFiles, Done, FileLister, Note, Work, WorkRunner
from icefield.expressions import BooleanExpression
from icefield.metadata import TableMetadata, TableRequirement, TableUpdate, ViewMetadata, ViewRequirement, ViewUpdate
from icefield.metadata.metrics import Metrics
from icefield.schema import Schema

__all__ = [
    "Attempt",
    "AttemptFiles",
    "BooleanExpression",
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
    "FileLister",
    "FileSystem",
    "FileSystemAbility",
    "FormatAbility",
    "FormatReader",
    "FormatWriter",
    "InputFile",
    "ListedFile",
    "ListedFiles",
    "ListedNumbers",
    "ListedValues",
    "ManifestFormat",
    "ManifestFormatReader",
    "ManifestReadRequest",
    "Metrics",
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
    "ScanListing",
    "ScanPlanRequest",
    "ScanPlanned",
    "ScanService",
    "Schema",
    "Split",
    "TableChange",
    "TableMetadata",
    "TableName",
    "TableRequirement",
    "TableUpdate",
    "UnsignedRequest",
    "UpkeepProgress",
    "ViewMetadata",
    "ViewProposal",
    "ViewRequirement",
    "ViewUpdate",
    "Work",
    "WorkRunner",
    "WrittenFile",
]
