"""Changes of a table: actions in packages by subject, and transactions that commit them together."""

from typing import TYPE_CHECKING

from icefield.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from icefield.metadata.properties import property_strings as property_strings
    from icefield.transaction.action import Action as Action
    from icefield.transaction.action import ActionContext as ActionContext
    from icefield.transaction.action import Changes as Changes
    from icefield.transaction.append_queue import AppendQueue as AppendQueue
    from icefield.transaction.branches.manage_snapshots import ManageSnapshots as ManageSnapshots
    from icefield.transaction.change_stream.apply_changes import StreamOfChanges as StreamOfChanges
    from icefield.transaction.change_stream.change_writer import ChangedFiles as ChangedFiles
    from icefield.transaction.change_stream.change_writer import ChangeWriter as ChangeWriter
    from icefield.transaction.change_stream.kinds import ChangeKind as ChangeKind
    from icefield.transaction.conflicts import IsolationLevel as IsolationLevel
    from icefield.transaction.files.append import AppendFiles as AppendFiles
    from icefield.transaction.files.append import FastAppendFiles as FastAppendFiles
    from icefield.transaction.files.equality_delta import EqualityDelta as EqualityDelta
    from icefield.transaction.files.replace_partitions import ReplacePartitions as ReplacePartitions
    from icefield.transaction.files.row_delta import RowDelta as RowDelta
    from icefield.transaction.files.whole_files import DeleteFiles as DeleteFiles
    from icefield.transaction.files.whole_files import OverwriteFiles as OverwriteFiles
    from icefield.transaction.files.whole_files import RewriteFiles as RewriteFiles
    from icefield.transaction.metadata_changes.update_layout import UpdateSortOrder as UpdateSortOrder
    from icefield.transaction.metadata_changes.update_layout import UpdateSpec as UpdateSpec
    from icefield.transaction.metadata_changes.update_properties import UpdateProperties as UpdateProperties
    from icefield.transaction.metadata_changes.update_schema import UpdateSchema as UpdateSchema
    from icefield.transaction.metadata_changes.update_statistics import UpdateStatistics as UpdateStatistics
    from icefield.transaction.row_level.merge_rows import Merge as Merge
    from icefield.transaction.row_level.upsert import UpsertRows as UpsertRows
    from icefield.transaction.rows import Rows as Rows
    from icefield.transaction.snapshots.write_result import WriteResult as WriteResult
    from icefield.transaction.table_access import TableAccess as TableAccess
    from icefield.transaction.transaction import Transaction as Transaction
    from icefield.transaction.update_snapshot import UpdateSnapshot as UpdateSnapshot

__getattr__, __dir__ = lazy_names(__name__)
