"""The parts of scans, writes and snapshots that a plugin below a table builds on: another engine, or maintenance."""

from icefield.catalog.identifiers import namespace_name
from icefield.metadata.metrics import MetricsConfig, apply_modes
from icefield.metadata.properties import NAME_MAPPING_DEFAULT
from icefield.metadata.remembered import following as branches_moved
from icefield.metadata.remembered import remembering_expired
from icefield.partitioning.parse import sort_order_of
from icefield.partitioning.sort_order import sort_indices, sort_keys, validate_order
from icefield.partitioning.sources import check_source, source_column
from icefield.partitioning.spec import check_partition_values, normalised_key, partition_batch, takes_name_of_column
from icefield.partitioning.transforms.arrays import halves_of
from icefield.partitioning.tuples import tuple_groups
from icefield.scan.columns.conversions import IncompatibleType, conversion
from icefield.scan.deletes.assigned import AssignedDeletes
from icefield.scan.deletes.equality import EqualityDeletes
from icefield.scan.deletes.index import DeleteIndex
from icefield.scan.deletes.key_columns import with_dropped
from icefield.scan.deletes.positions import (
    named_positions,
    position_delete_batches,
    read_vector,
    stored_position_deletes,
)
from icefield.scan.deletes.store import DeleteStore
from icefield.scan.deletes.targets import DELETE_STATISTICS
from icefield.scan.partitions.stats_file import read_stats, stats_schema, united_partition
from icefield.scan.partitions.sums import COLUMNS as SUMMED_COLUMNS
from icefield.scan.partitions.sums import FILES as COUNTS_OF_FILES
from icefield.scan.partitions.sums import SUMS, PartitionSums, SummingUp, combined, snapshot_times
from icefield.scan.partitions.united import UnitedPartition, partition_keys
from icefield.scan.planning.manifest_filter import ManifestFilter
from icefield.scan.planning.manifest_reads import manifest_groups
from icefield.scan.planning.matching import run_in_lots
from icefield.scan.planning.planned_files import PlannedFiles
from icefield.scan.planning.reachable import CONTENT_KINDS, FileKind, Kinds, manifests_of
from icefield.scan.planning.reachable import files as files_of_manifests
from icefield.scan.reading import TaskReader, read_task
from icefield.scan.temporary_batches import HELD_BYTES as BUFFER_BYTES
from icefield.scan.temporary_batches import TemporaryBatches
from icefield.schema.evolution import SchemaUpdate
from icefield.schema.name_mapping import carries_ids
from icefield.schema.row_lineage import LINEAGE_IDS, with_lineage
from icefield.storage.neighbours import refuse_shared_files
from icefield.toolkit.table_folders import NOTE as FOLDER_NOTE
from icefield.toolkit.table_folders import folders_around, is_of_another, metadata_of_another, table_uuid_in
from icefield.transaction.conflicts import delete_index
from icefield.transaction.files.append import refuse_twice
from icefield.transaction.head.branch_head import Head, head_of
from icefield.transaction.head.filtering import RowFilter
from icefield.transaction.row_level.head_deletes import HeadDeletes
from icefield.transaction.snapshots.manifests import ManifestForm
from icefield.transaction.snapshots.snapshot_producer import FileChanges, SnapshotProducer
from icefield.transaction.snapshots.summary import ChangeCounter, distinct_partitions, totals_of
from icefield.types.arrow.pieces import one_array
from icefield.types.values import constant_array, from_arrow_array, from_bytes_array, to_arrow_scalar, to_internal
from icefield.types.values.arrow import cast_to_type
from icefield.types.values.binary import FIXED_WIDTHS
from icefield.writing.conforming import Conforming, check_nulls, has_required
from icefield.writing.deletes.vectors import VectorFiles, puffin_files
from icefield.writing.files import FileSet
from icefield.writing.ordered_writer import OrderedWriter

__all__ = [
    "BUFFER_BYTES",
    "CONTENT_KINDS",
    "COUNTS_OF_FILES",
    "DELETE_STATISTICS",
    "FIXED_WIDTHS",
    "FOLDER_NOTE",
    "LINEAGE_IDS",
    "NAME_MAPPING_DEFAULT",
    "SUMMED_COLUMNS",
    "SUMS",
    "AssignedDeletes",
    "ChangeCounter",
    "Conforming",
    "DeleteIndex",
    "DeleteStore",
    "EqualityDeletes",
    "FileChanges",
    "FileKind",
    "FileSet",
    "Head",
    "HeadDeletes",
    "IncompatibleType",
    "Kinds",
    "ManifestFilter",
    "ManifestForm",
    "MetricsConfig",
    "OrderedWriter",
    "PartitionSums",
    "PlannedFiles",
    "RowFilter",
    "SchemaUpdate",
    "SnapshotProducer",
    "SummingUp",
    "TaskReader",
    "TemporaryBatches",
    "UnitedPartition",
    "VectorFiles",
    "apply_modes",
    "branches_moved",
    "carries_ids",
    "cast_to_type",
    "check_nulls",
    "check_partition_values",
    "check_source",
    "combined",
    "constant_array",
    "conversion",
    "delete_index",
    "distinct_partitions",
    "files_of_manifests",
    "folders_around",
    "from_arrow_array",
    "from_bytes_array",
    "halves_of",
    "has_required",
    "head_of",
    "is_of_another",
    "manifest_groups",
    "manifests_of",
    "metadata_of_another",
    "named_positions",
    "namespace_name",
    "normalised_key",
    "one_array",
    "partition_batch",
    "partition_keys",
    "position_delete_batches",
    "puffin_files",
    "read_stats",
    "read_task",
    "read_vector",
    "refuse_shared_files",
    "refuse_twice",
    "remembering_expired",
    "run_in_lots",
    "snapshot_times",
    "sort_indices",
    "sort_keys",
    "sort_order_of",
    "source_column",
    "stats_schema",
    "stored_position_deletes",
    "table_uuid_in",
    "takes_name_of_column",
    "to_arrow_scalar",
    "to_internal",
    "totals_of",
    "tuple_groups",
    "united_partition",
    "validate_order",
    "with_dropped",
    "with_lineage",
]
