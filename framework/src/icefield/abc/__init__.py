"""The contracts for plugin authors, with the types in their signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from icefield.abc.access import FileAccess as FileAccess
    from icefield.abc.access import UnsignedRequest as UnsignedRequest
    from icefield.abc.catalog import CaseInsensitiveCatalog as CaseInsensitiveCatalog
    from icefield.abc.catalog import CatalogAbility as CatalogAbility
    from icefield.abc.catalog import CatalogBackend as CatalogBackend
    from icefield.abc.catalog import CurrentView as CurrentView
    from icefield.abc.catalog import MultiTableCatalog as MultiTableCatalog
    from icefield.abc.catalog import NamespaceName as NamespaceName
    from icefield.abc.catalog import NewTable as NewTable
    from icefield.abc.catalog import Page as Page
    from icefield.abc.catalog import ServedCatalog as ServedCatalog
    from icefield.abc.catalog import TableName as TableName
    from icefield.abc.catalog import ViewCatalog as ViewCatalog
    from icefield.abc.catalog import ViewProposal as ViewProposal
    from icefield.abc.commit import CommitStrategy as CommitStrategy
    from icefield.abc.commit import Committed as Committed
    from icefield.abc.commit import Conflict as Conflict
    from icefield.abc.commit import Current as Current
    from icefield.abc.commit import Pointer as Pointer
    from icefield.abc.commit import Proposal as Proposal
    from icefield.abc.commit import TableChange as TableChange
    from icefield.abc.encryption import FileKey as FileKey
    from icefield.abc.encryption import TableEncryption as TableEncryption
    from icefield.abc.events import CommitConflict as CommitConflict
    from icefield.abc.events import CommitMade as CommitMade
    from icefield.abc.events import Event as Event
    from icefield.abc.events import MetricsReported as MetricsReported
    from icefield.abc.events import OperationEvent as OperationEvent
    from icefield.abc.events import OperationFailed as OperationFailed
    from icefield.abc.events import OperationFinished as OperationFinished
    from icefield.abc.events import OperationProgress as OperationProgress
    from icefield.abc.events import OperationStarted as OperationStarted
    from icefield.abc.events import ScanPlanned as ScanPlanned
    from icefield.abc.file_format import FileFormat as FileFormat
    from icefield.abc.file_format import FlushingWriter as FlushingWriter
    from icefield.abc.file_format import FormatAbility as FormatAbility
    from icefield.abc.file_format import FormatOfManyFiles as FormatOfManyFiles
    from icefield.abc.file_format import FormatReader as FormatReader
    from icefield.abc.file_format import FormatWriter as FormatWriter
    from icefield.abc.file_format import ReadRequest as ReadRequest
    from icefield.abc.file_format import Split as Split
    from icefield.abc.file_format import TypedReader as TypedReader
    from icefield.abc.file_format import WrittenFile as WrittenFile
    from icefield.abc.file_system import FileInfo as FileInfo
    from icefield.abc.file_system import FileSystem as FileSystem
    from icefield.abc.file_system import FileSystemAbility as FileSystemAbility
    from icefield.abc.file_system import InputFile as InputFile
    from icefield.abc.file_system import OutputStream as OutputStream
    from icefield.abc.file_system import PutMode as PutMode
    from icefield.abc.key_services import GeneratedKey as GeneratedKey
    from icefield.abc.key_services import KeyService as KeyService
    from icefield.abc.key_services import MasterKey as MasterKey
    from icefield.abc.manifest_format import ManifestFormat as ManifestFormat
    from icefield.abc.manifest_format import ManifestFormatReader as ManifestFormatReader
    from icefield.abc.manifest_format import ManifestReadRequest as ManifestReadRequest
    from icefield.abc.scans import ScanListing as ScanListing
    from icefield.abc.scans import ScanPlanRequest as ScanPlanRequest
    from icefield.abc.scans import ScanService as ScanService
    from icefield.abc.work import Attempt as Attempt
    from icefield.abc.work import AttemptFiles as AttemptFiles
    from icefield.abc.work import Done as Done
    from icefield.abc.work import FileLister as FileLister
    from icefield.abc.work import Note as Note
    from icefield.abc.work import Work as Work
    from icefield.abc.work import WorkRunner as WorkRunner
    from icefield.abc.work import unnoted as unnoted
    from icefield.expressions import BooleanExpression as BooleanExpression
    from icefield.manifest import DataFile as DataFile
    from icefield.metadata import EncryptedKey as EncryptedKey
    from icefield.metadata import TableMetadata as TableMetadata
    from icefield.metadata import TableRequirement as TableRequirement
    from icefield.metadata import TableUpdate as TableUpdate
    from icefield.metadata import ViewMetadata as ViewMetadata
    from icefield.metadata import ViewRequirement as ViewRequirement
    from icefield.metadata import ViewUpdate as ViewUpdate
    from icefield.metadata.metrics import Metrics as Metrics
    from icefield.schema import Schema as Schema

__getattr__, __dir__ = lazy_names(__name__)
