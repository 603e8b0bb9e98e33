"""Names of modules that only some uses of a catalog need: each is imported when it is first used."""

from typing import TYPE_CHECKING

from icefield.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from icefield.catalog.inspection.inspect_table import InspectTable as InspectTable
    from icefield.catalog.purge import delete_files_of as delete_files_of
    from icefield.catalog.transaction import CatalogTransaction as CatalogTransaction
    from icefield.catalog.transaction import ChangeOfTables as ChangeOfTables
    from icefield.catalog.transaction import Staged as Staged
    from icefield.catalog.transaction import TableUpdates as TableUpdates
    from icefield.catalog.transaction import changes_several as changes_several
    from icefield.catalog.transaction import settle_tables as settle_tables
    from icefield.commit import commit_table as commit_table
    from icefield.metadata import SetProperties as SetProperties
    from icefield.metadata import new_table_metadata as new_table_metadata
    from icefield.metadata.updates.apply import creation_updates as creation_updates
    from icefield.transaction import AppendQueue as AppendQueue
    from icefield.transaction import TableAccess as TableAccess
    from icefield.transaction import Transaction as Transaction
    from icefield.transaction.metadata_changes.replace_table import ReplaceTable as ReplaceTable
    from icefield.transaction.row_changes import RowChanges as RowChanges
    from icefield.transaction.rows import columns_of as columns_of
    from icefield.transaction.rows import with_columns_known as with_columns_known
    from icefield.writing import WriteContext as WriteContext

__getattr__, __dir__ = lazy_names(__name__)
