"""Changes of a table: one action a file, and transactions that commit them together."""

from icefield.transaction.action import Action, ActionContext, Changes
from icefield.transaction.append import AppendFiles, FastAppendFiles
from icefield.transaction.conflicts import IsolationLevel
from icefield.transaction.delete_files import DeleteFiles
from icefield.transaction.manage_snapshots import ManageSnapshots
from icefield.transaction.overwrite import OverwriteFiles
from icefield.transaction.replace import RewriteFiles
from icefield.transaction.replace_partitions import ReplacePartitions
from icefield.transaction.rows import Rows
from icefield.transaction.transaction import Transaction
from icefield.transaction.update_properties import UpdateProperties, property_texts
from icefield.transaction.update_schema import UpdateSchema
from icefield.transaction.update_snapshot import UpdateSnapshot
from icefield.transaction.update_sort_order import UpdateSortOrder
from icefield.transaction.update_spec import UpdateSpec
from icefield.transaction.upsert import UpsertResult, UpsertRows

__all__ = [
    "Action",
    "ActionContext",
    "AppendFiles",
    "Changes",
    "DeleteFiles",
    "FastAppendFiles",
    "IsolationLevel",
    "ManageSnapshots",
    "OverwriteFiles",
    "ReplacePartitions",
    "RewriteFiles",
    "Rows",
    "Transaction",
    "UpdateProperties",
    "UpdateSchema",
    "UpdateSnapshot",
    "UpdateSortOrder",
    "UpdateSpec",
    "UpsertResult",
    "UpsertRows",
    "property_texts",
]
