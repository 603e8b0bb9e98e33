"""Puffin files: blobs of statistics and deletion vectors, read and written."""

from icefield.puffin.blobs import REFERENCED_DATA_FILE, Blob, BlobType
from icefield.puffin.deletion_vector import decode_vector, encode_vector, encode_vectors
from icefield.puffin.reader import PuffinReader, read_range
from icefield.puffin.roaring import Positions
from icefield.puffin.writer import PuffinWriter, writer_name

__all__ = [
    "REFERENCED_DATA_FILE",
    "Blob",
    "BlobType",
    "Positions",
    "PuffinReader",
    "PuffinWriter",
    "decode_vector",
    "encode_vector",
    "encode_vectors",
    "read_range",
    "writer_name",
]
