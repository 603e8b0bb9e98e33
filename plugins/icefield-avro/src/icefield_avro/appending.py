"""Appending records to a copy of a file without decoding the existing records."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from icefield.errors import UnsupportedFeature
from icefield.schema import Schema

from icefield_avro.codecs import deflater
from icefield_avro.container import CODEC_KEY, SCHEMA_KEY, SYNC_SIZE, Header, encode_header, parse_header
from icefield_avro.encoding import encode
from icefield_avro.nodes import Array, Field, Map, Node, Optional, Primitive, Record
from icefield_avro.schema_reading import parse_schema
from icefield_avro.varints import Malformed, Truncated
from icefield_avro.writer import DEFAULT_BLOCK_SIZE, BlockCutter, compiled, conformed, encode_block


def append_blocks(old: bytes, schema: Schema, batch: pa.RecordBatch, metadata: Mapping[str, str]) -> bytes | None:
    """A new file: the blocks of ``old``, byte for byte, then the rows of ``batch``, under new ``metadata``.

    The writer's schema and the codec of ``old`` are kept, so that its blocks stay readable. The result is None if that
    schema has another layout than ``schema`` (fields, their order, ids and types), if this module does not write the
    codec, or if ``old`` is not a whole Avro file. The file must then be decoded and written anew.
    """
    try:
        header = parse_header(old)
        record = parse_schema(header.metadata.get(SCHEMA_KEY, b""))
        pack = deflater(header.codec)
    except (Malformed, Truncated, UnsupportedFeature):
        return None
    _, ours, arrow = compiled(schema)
    if not same_layout(record, ours) or not _ends_whole(old, header):
        return None
    kept = {CODEC_KEY: header.codec.encode(), SCHEMA_KEY: header.metadata[SCHEMA_KEY]}
    parts = [encode_header(kept | {key: value.encode() for key, value in metadata.items()}, header.sync)]
    parts.append(old[header.size :])
    if batch.num_rows:
        cutter = BlockCutter(DEFAULT_BLOCK_SIZE)
        blocks = list(cutter.add(encode(record, conformed(batch, arrow).columns, batch.num_rows)))
        if cutter:
            blocks.append(cutter.cut())
        parts += [encode_block(count, pack(body), header.sync) for count, body in blocks]
    return b"".join(parts)


def _ends_whole(old: bytes, header: Header) -> bool:
    return len(old) == header.size or (len(old) >= header.size + SYNC_SIZE and old.endswith(header.sync))


def same_layout(old: Node, new: Node) -> bool:
    """Whether values have the same meaning and the same bytes in both schemas, except for the order in unions."""
    match old, new:
        case Primitive(), Primitive():
            alike = (old.wire, old.size, old.factor, old.name_in_metadata) == (
                new.wire,
                new.size,
                new.factor,
                new.name_in_metadata,
            )
            return alike and old.arrow.equals(new.arrow)
        case Optional(), Optional():
            return old.null_branch is not None and same_layout(old.inner, new.inner)
        case Record(), Record():
            return len(old.fields) == len(new.fields) and all(map(_same_field, old.fields, new.fields))
        case Array(), Array():
            return _same_field(old.item, new.item)
        case Map(), Map():
            return _same_field(old.key, new.key) and _same_field(old.value, new.value)
    return False


def _same_field(old: Field, new: Field) -> bool:
    return old.field_id == new.field_id and same_layout(old.node, new.node)
