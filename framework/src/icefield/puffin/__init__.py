"""Puffin files: their blobs of statistics and deletion vectors, and how they are written."""

from icefield.base.limits import MAX_PUFFIN_BLOB_BYTES, MAX_PUFFIN_FOOTER_BYTES
from icefield.puffin.blobs import MAGIC, REFERENCED_DATA_FILE, Blob, BlobType, FooterPayload, read_range
from icefield.puffin.deletion_vector import decode_vector, encode_vector, encode_vectors
from icefield.puffin.roaring import Positions
from icefield.puffin.writer import PuffinWriter, writer_name

__all__ = [
    "MAGIC",
    "MAX_PUFFIN_BLOB_BYTES",
    "MAX_PUFFIN_FOOTER_BYTES",
    "REFERENCED_DATA_FILE",
    "Blob",
    "BlobType",
    "FooterPayload",
    "Positions",
    "PuffinWriter",
    "decode_vector",
    "encode_vector",
    "encode_vectors",
    "read_range",
    "writer_name",
]
