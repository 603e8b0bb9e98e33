"""Changes of a table: actions, one in each file, and transactions that commit them together."""

from icefield.transaction.action import Action, ActionContext, Changes
from icefield.transaction.add_files import FileDescriber
from icefield.transaction.append import AppendFiles, FastAppendFiles
from icefield.transaction.change_stream.apply_changes import StreamOfChanges
from icefield.transaction.change_stream.change_writer import ChangedFiles, ChangeWriter
from icefield.transaction.change_stream.kinds import ChangeKind
from icefield.transaction.conflicts import IsolationLevel
from icefield.transaction.delete_files import DeleteFiles
from icefield.transaction.equality_delta import EqualityDelta
from icefield.transaction.manage_snapshots import ManageSnapshots
from icefield.transaction.overwrite import OverwriteFiles
from icefield.transaction.replace import RewriteFiles
from icefield.transaction.replace_partitions import ReplacePartitions
from icefield.transaction.row_delta import RowDelta
from icefield.transaction.row_level.merge_rows import Merge, MergeResult
from icefield.transaction.row_level.update_rows import UpdateResult
from icefield.transaction.row_level.upsert import UpsertResult, UpsertRows
from icefield.transaction.rows import Rows
from icefield.transaction.table_access import TableAccess
from icefield.transaction.transaction import Transaction
from icefield.transaction.update_properties import UpdateProperties, property_strings
from icefield.transaction.update_schema import UpdateSchema
from icefield.transaction.update_snapshot import UpdateSnapshot
from icefield.transaction.update_sort_order import UpdateSortOrder
from icefield.transaction.update_spec import UpdateSpec
from icefield.transaction.update_statistics import UpdateStatistics

__all__ = [
    "Action",
    "ActionContext",
    "AppendFiles",
    "ChangeKind",
    "ChangeWriter",
    "ChangedFiles",
    "Changes",
    "DeleteFiles",
    "EqualityDelta",
    "FastAppendFiles",
    "FileDescriber",
    "IsolationLevel",
    "ManageSnapshots",
    "Merge",
    "MergeResult",
    "OverwriteFiles",
    "ReplacePartitions",
    "RewriteFiles",
    "RowDelta",
    "Rows",
    "StreamOfChanges",
    "TableAccess",
    "Transaction",
    "UpdateProperties",
    "UpdateResult",
    "UpdateSchema",
    "UpdateSnapshot",
    "UpdateSortOrder",
    "UpdateSpec",
    "UpdateStatistics",
    "UpsertResult",
    "UpsertRows",
    "property_strings",
]
