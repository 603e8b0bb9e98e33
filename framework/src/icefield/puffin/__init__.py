"""Puffin files: their blobs of statistics and deletion vectors, and how they are written."""

from icefield.base.lazy_names import public_names
from icefield.base.limits import MAX_PUFFIN_BLOB_BYTES as MAX_PUFFIN_BLOB_BYTES
from icefield.base.limits import MAX_PUFFIN_FOOTER_BYTES as MAX_PUFFIN_FOOTER_BYTES
from icefield.puffin.blobs import MAGIC as MAGIC
from icefield.puffin.blobs import REFERENCED_DATA_FILE as REFERENCED_DATA_FILE
from icefield.puffin.blobs import Blob as Blob
from icefield.puffin.blobs import BlobType as BlobType
from icefield.puffin.blobs import FooterPayload as FooterPayload
from icefield.puffin.blobs import read_range as read_range
from icefield.puffin.deletion_vector import decode_vector as decode_vector
from icefield.puffin.deletion_vector import encode_vectors as encode_vectors
from icefield.puffin.roaring import Positions as Positions
from icefield.puffin.writer import PuffinWriter as PuffinWriter
from icefield.puffin.writer import writer_name as writer_name

__all__ = public_names(__name__)
