"""Writing delete files: position deletes, deletion vectors and equality deletes."""

from icefield.writing.deletes.context import DeleteContext, DeletedRows
from icefield.writing.deletes.equality_files import write_equality_deletes
from icefield.writing.deletes.position_files import write_position_deletes
from icefield.writing.deletes.vectors import write_deletion_vectors

__all__ = ["DeleteContext", "DeletedRows", "write_deletion_vectors", "write_equality_deletes", "write_position_deletes"]
