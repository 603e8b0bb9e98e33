"""Footers of stripes: the streams of a stripe, with their columns and lengths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from icefield.abc import InputFile

from icefield_orc.compression import unpack
from icefield_orc.protobuf import Item, blob, integer, items
from icefield_orc.schema import Node, TypeKind
from icefield_orc.tail import Stripe, Tail

PRESENT, DATA, LENGTH, DICTIONARY, DICTIONARY_COUNT, SECONDARY, ROW_INDEX, BLOOM, BLOOM_UTF8 = range(9)
INDEXES = frozenset({ROW_INDEX, BLOOM, BLOOM_UTF8})
STREAMS, ENCODINGS = 1, 2
_LARGEST_FOOTER = 16 << 20
_MOST_BYTES = 64 << 20
_PARTS_OF_A_TYPE, _OTHER_PARTS = 16, 1024
"""The most fields of a stripe's footer: for each type streams of nine kinds and an encoding, and unknown fields."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream: its kind, the number of its column, and its length in bytes."""

    kind: int
    column: int
    length: int


@dataclass(frozen=True, slots=True)
class StripeFooter:
    """A stripe footer with the streams in their order, and all other fields.

    For each column it holds the kind of encoding and the number of entries of the dictionary.
    """

    streams: tuple[Stream, ...]
    encodings: tuple[int, ...]
    dictionaries: tuple[int, ...]
    fields: tuple[Item, ...]


def parse_stripe_footer(packed: bytes, tail: Tail) -> StripeFooter:
    """A footer as it is in the file. Raises ``ValueError`` for damage."""
    postscript = tail.postscript
    data = unpack(packed, postscript.codec, postscript.block_size, _LARGEST_FOOTER)
    most = _PARTS_OF_A_TYPE * len(tail.types) + _OTHER_PARTS
    streams, encodings, dictionaries, fields = [], [], [], tuple(islice(items(data, most + 1), most + 1))
    if len(fields) > most:
        raise ValueError("a stripe's footer with more streams than its columns can have")
    for number, value in fields:
        if number == STREAMS:
            parts = {part: integer(held) for part, held in items(blob(value))}
            streams.append(Stream(*(parts.get(part, 0) for part in (1, 2, 3))))
        elif number == ENCODINGS:
            stated = dict(items(blob(value)))
            encodings.append(integer(stated.get(1, 0)))
            dictionaries.append(integer(stated.get(2, 0)))
    return StripeFooter(tuple(streams), tuple(encodings), tuple(dictionaries), fields)


def check_streams(footer: StripeFooter, stripe: Stripe, types: int) -> None:
    """Check that the streams belong to the file's columns and fill their stripe. Raises ``ValueError``."""
    if len(footer.encodings) != types or any(stream.column >= types for stream in footer.streams):
        raise ValueError("a stripe's footer speaks of other columns than the file has")
    if sum(stream.length for stream in footer.streams) != stripe.index_length + stripe.data_length:
        raise ValueError("the streams of a stripe do not fill it")


def read_stripe_footer(source: InputFile, stripe: Stripe, tail: Tail) -> StripeFooter:
    """The footer of one stripe, checked. Raises ``ValueError`` for damage."""
    if stripe.footer_length > _LARGEST_FOOTER:
        raise ValueError("a stripe's footer claims to be too long")
    packed = source.read_at(stripe.start + stripe.index_length + stripe.data_length, stripe.footer_length)
    if len(packed) != stripe.footer_length:
        raise ValueError("it is shorter than it should be")
    footer = parse_stripe_footer(packed, tail)
    check_streams(footer, stripe, len(tail.types))
    return footer


def read_footers(source: InputFile, tail: Tail) -> list[StripeFooter] | None:
    """The footers of all stripes; None where that would be too much to read."""
    if sum(stripe.footer_length for stripe in tail.stripes) > _MOST_BYTES:
        return None
    return [read_stripe_footer(source, stripe, tail) for stripe in tail.stripes]


def column_sizes(footers: Iterable[StripeFooter], root: Node) -> dict[int, int]:
    """Bytes on disk of each column that has values of its own, by field id: its streams without the indexes."""
    sizes: Counter[int] = Counter()
    for footer in footers:
        for stream in footer.streams:
            if stream.kind not in INDEXES:
                sizes[stream.column] += stream.length
    held = [
        node for node in root.below() if node.kind not in (TypeKind.STRUCT, TypeKind.LIST, TypeKind.MAP) or node.opaque
    ]
    found = {node.field_id: sum(sizes[below.column] for below in node.below()) for node in held}
    return {number: size for number, size in found.items() if number is not None and size}
