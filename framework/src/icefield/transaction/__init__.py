"""Changes of a table: actions in packages by subject, and transactions that commit them together."""

from icefield.transaction.action import Action, ActionContext, Changes
from icefield.transaction.append_queue import AppendQueue
from icefield.transaction.branches.manage_snapshots import ManageSnapshots
from icefield.transaction.change_stream.apply_changes import StreamOfChanges
from icefield.transaction.change_stream.change_writer import ChangedFiles, ChangeWriter
from icefield.transaction.change_stream.kinds import ChangeKind
from icefield.transaction.conflicts import IsolationLevel
from icefield.transaction.files.append import AppendFiles, FastAppendFiles
from icefield.transaction.files.equality_delta import EqualityDelta
from icefield.transaction.files.replace_partitions import ReplacePartitions
from icefield.transaction.files.row_delta import RowDelta
from icefield.transaction.files.whole_files import DeleteFiles, OverwriteFiles, RewriteFiles
from icefield.transaction.metadata_changes.update_layout import UpdateSortOrder, UpdateSpec
from icefield.transaction.metadata_changes.update_properties import UpdateProperties, property_strings
from icefield.transaction.metadata_changes.update_schema import UpdateSchema
from icefield.transaction.metadata_changes.update_statistics import UpdateStatistics
from icefield.transaction.row_level.merge_rows import Merge
from icefield.transaction.row_level.upsert import UpsertRows
from icefield.transaction.rows import Rows
from icefield.transaction.snapshots.write_result import WriteResult
from icefield.transaction.table_access import TableAccess
from icefield.transaction.transaction import Transaction
from icefield.transaction.update_snapshot import UpdateSnapshot

__all__ = [
    "Action",
    "ActionContext",
    "AppendFiles",
    "AppendQueue",
    "ChangeKind",
    "ChangeWriter",
    "ChangedFiles",
    "Changes",
    "DeleteFiles",
    "EqualityDelta",
    "FastAppendFiles",
    "IsolationLevel",
    "ManageSnapshots",
    "Merge",
    "OverwriteFiles",
    "ReplacePartitions",
    "RewriteFiles",
    "RowDelta",
    "Rows",
    "StreamOfChanges",
    "TableAccess",
    "Transaction",
    "UpdateProperties",
    "UpdateSchema",
    "UpdateSnapshot",
    "UpdateSortOrder",
    "UpdateSpec",
    "UpdateStatistics",
    "UpsertRows",
    "WriteResult",
    "property_strings",
]
