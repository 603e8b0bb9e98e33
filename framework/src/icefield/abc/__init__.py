"""The contracts for plugin authors, with the types in their signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from icefield.abc.access import FileAccess, UnsignedRequest
    from icefield.abc.catalog import (
        CaseInsensitiveCatalog,
        CatalogAbility,
        CatalogBackend,
        CurrentView,
        MultiTableCatalog,
        NamespaceName,
        NewTable,
        Page,
        ServedCatalog,
        TableName,
        ViewCatalog,
        ViewProposal,
    )
    from icefield.abc.commit import CommitStrategy, Committed, Conflict, Current, Pointer, Proposal, TableChange
    from icefield.abc.encryption import FileKey, TableEncryption
    from icefield.abc.events import (
        CommitConflict,
        CommitMade,
        Event,
        MaintenanceProgress,
        MetricsReported,
        OperationEvent,
        OperationFailed,
        OperationFinished,
        OperationStarted,
        ScanPlanned,
    )
    from icefield.abc.file_format import (
        FileFormat,
        FlushingWriter,
        FormatAbility,
        FormatOfManyFiles,
        FormatReader,
        FormatWriter,
        ReadRequest,
        Split,
        TypedReader,
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
    from icefield.abc.key_services import GeneratedKey, KeyService, MasterKey
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
    from icefield.abc.work import Attempt, AttemptFiles, Done, FileLister, Note, Work, WorkRunner, unnoted
    from icefield.expressions import BooleanExpression
    from icefield.metadata import (
        TableMetadata,
        TableRequirement,
        TableUpdate,
        ViewMetadata,
        ViewRequirement,
        ViewUpdate,
    )
    from icefield.metadata.metrics import Metrics
    from icefield.schema import Schema

__getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Attempt",
    "AttemptFiles",
    "BooleanExpression",
    "CaseInsensitiveCatalog",
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
    "FileKey",
    "FileLister",
    "FileSystem",
    "FileSystemAbility",
    "FlushingWriter",
    "FormatAbility",
    "FormatOfManyFiles",
    "FormatReader",
    "FormatWriter",
    "GeneratedKey",
    "InputFile",
    "KeyService",
    "ListedFile",
    "ListedFiles",
    "ListedNumbers",
    "ListedValues",
    "MaintenanceProgress",
    "ManifestFormat",
    "ManifestFormatReader",
    "ManifestReadRequest",
    "MasterKey",
    "Metrics",
    "MetricsReported",
    "MultiTableCatalog",
    "NamespaceName",
    "NewTable",
    "Note",
    "OperationEvent",
    "OperationFailed",
    "OperationFinished",
    "OperationStarted",
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
    "ServedCatalog",
    "Split",
    "TableChange",
    "TableEncryption",
    "TableMetadata",
    "TableName",
    "TableRequirement",
    "TableUpdate",
    "TypedReader",
    "UnsignedRequest",
    "ViewCatalog",
    "ViewMetadata",
    "ViewProposal",
    "ViewRequirement",
    "ViewUpdate",
    "Work",
    "WorkRunner",
    "WrittenFile",
    "unnoted",
]
