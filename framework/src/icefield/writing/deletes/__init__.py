"""Writing delete files: position deletes, deletion vectors and equality deletes."""

from icefield.writing.deletes.context import DeleteContext as DeleteContext
from icefield.writing.deletes.context import DeletedRows as DeletedRows
from icefield.writing.deletes.equality_files import write_equality_deletes as write_equality_deletes
from icefield.writing.deletes.position_files import write_position_deletes as write_position_deletes
from icefield.writing.deletes.vectors import write_deletion_vectors as write_deletion_vectors
