"""Checks of a stripe before Arrow decodes it.

Arrow allocates memory for as many strings, dictionary entries and list elements as a stripe claims, and ends the
process if the allocation fails. A null among the keys of a map also ends the process. So the claims are compared with
the capacity of the streams in the file. Streams are read ahead for these checks, and Arrow gets them from memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from icefield.abc import InputFile
from icefield.errors import IcefieldError

from icefield_orc.compression import NONE, unpack
from icefield_orc.run_lengths import sum_of_lengths
from icefield_orc.schema import Node, TypeKind
from icefield_orc.stripes import DATA, DICTIONARY, INDEXES, LENGTH, PRESENT, Stream, StripeFooter
from icefield_orc.tail import PostScript, Stripe

_GAP = 1 << 18
_DICTIONARIES = frozenset({1, 3})
_SECOND_VERSIONS = frozenset({2, 3})
_STRINGS = frozenset({TypeKind.STRING, TypeKind.VARCHAR, TypeKind.CHAR, TypeKind.BINARY})
_HARMLESS_BYTES = 32 << 20
_HARMLESS_COUNT = 1 << 20
_VALUES_IN_A_BYTE = 520
"""The most values that an encoding puts into a byte: runs of 130 equal bytes of eight flags take two."""

_SLACK = 4
"""A claim may exceed the capacity of its streams by this factor: an upper bound of a claim is faster than its sum."""

_LARGEST = 4 << 30
_LONGEST_LENGTHS = 1 << 30


class PrefetchedFile(InputFile):
    """A file with some pieces held in memory."""

    def __init__(self, source: InputFile) -> None:
        self._source = source
        self._pieces: list[tuple[int, bytes]] = []
        self._storage_error: IcefieldError | None = None

    def storage_error(self) -> IcefieldError | None:
        """The error of the storage that a read raised last, once: pyarrow renames an error that passes through it."""
        found, self._storage_error = self._storage_error, None
        return found

    def hold(self, spans: Iterable[tuple[int, int]]) -> None:
        """Read pieces ahead by start and end, and drop earlier ones; read pieces close to each other together."""
        self._pieces = []
        merged: list[list[int]] = []
        for start, end in sorted(spans):
            if merged and start - merged[-1][1] <= _GAP:
                merged[-1][1] = max(end, merged[-1][1])
            elif end > start:
                merged.append([start, end])
        ranges = [(start, end - start) for start, end in merged]
        for (start, length), data in zip(ranges, self._source.read_ranges(ranges), strict=True):
            if len(data) != length:
                raise ValueError("it is shorter than it should be")
            self._pieces.append((start, data))

    @property
    def size(self) -> int:
        return self._source.size

    def read_at(self, offset: int, length: int) -> bytes:
        for first, data in self._pieces:
            if first <= offset and offset + length <= first + len(data):
                return data[offset - first : offset - first + length]
        try:
            return self._source.read_at(offset, length)
        except IcefieldError as error:
            self._storage_error = error
            raise

    @property
    def closed(self) -> bool:
        return self._source.closed

    def close(self) -> None:
        """Do nothing: the opener of the file closes it."""


def check_stripe(
    ahead: PrefetchedFile, footer: StripeFooter, stripe: Stripe, postscript: PostScript, nodes: list[Node]
) -> None:
    """Read the streams of columns ahead and check their claims. Raises ``ValueError`` for a false claim.

    ``nodes`` are the types that Arrow will decode.
    """
    columns = {node.column for node in nodes}
    streams = _Streams(ahead, postscript)
    position = stripe.start
    for stream in footer.streams:
        if stream.column in columns and stream.kind not in INDEXES:
            streams.add(stream, position)
        position += stream.length
    ahead.hold(streams.spans())
    for node in nodes:
        encoding, entries = footer.encodings[node.column], footer.dictionaries[node.column]
        if encoding in _DICTIONARIES or entries:
            _check_dictionary(streams, node.column, encoding, entries)
        elif node.kind in _STRINGS:
            _check_lengths(streams, node.column, encoding, streams.bytes_of(node.column, DATA), _HARMLESS_BYTES)
        elif node.kind in (TypeKind.LIST, TypeKind.MAP):
            held = sum(streams.bytes_of(below.column) for child in node.children for below in child.below())
            _check_lengths(streams, node.column, encoding, held * _VALUES_IN_A_BYTE, _HARMLESS_COUNT)
        if node.kind == TypeKind.MAP and streams.has(node.children[0].column, PRESENT):
            _check_keys(streams, node, encoding)


class _Streams:
    """The streams of a stripe that are needed, by column and kind."""

    def __init__(self, ahead: PrefetchedFile, postscript: PostScript) -> None:
        self._ahead = ahead
        self._postscript = postscript
        self._places: dict[tuple[int, int], tuple[int, int]] = {}
        self._bounds: dict[tuple[int, int], int] = {}

    def add(self, stream: Stream, start: int) -> None:
        if (stream.column, stream.kind) in self._places:
            raise ValueError("a stripe has two streams of a kind for a column")
        self._places[stream.column, stream.kind] = start, stream.length

    def spans(self) -> Sequence[tuple[int, int]]:
        return [(start, start + length) for start, length in self._places.values()]

    def has(self, column: int, kind: int) -> bool:
        return (column, kind) in self._places

    def unpacked(self, column: int, kind: int) -> bytes:
        start, length = self._places.get((column, kind), (0, 0))
        data = self._ahead.read_at(start, length)
        return unpack(data, self._postscript.codec, self._postscript.block_size, _LONGEST_LENGTHS)

    def bytes_of(self, column: int, kind: int | None = None) -> int:
        """The most bytes that the streams of a column can hold when unpacked."""
        places = [place for place in self._places if place[0] == column and kind in (None, place[1])]
        return sum(self._bound(place) for place in places)

    def _bound(self, place: tuple[int, int]) -> int:
        if place not in self._bounds:
            start, length = self._places[place]
            if self._postscript.codec == NONE:
                self._bounds[place] = length
            else:
                self._bounds[place] = _unpacked_bound(self._ahead.read_at(start, length), self._postscript.block_size)
        return self._bounds[place]


def _unpacked_bound(data: bytes, block_size: int) -> int:
    position, total = 0, 0
    while position < len(data) and total < _LARGEST:
        header = int.from_bytes(data[position : position + 3], "little")
        length = header >> 1
        position += 3 + length
        if position > len(data):
            raise ValueError("a compressed chunk is cut off")
        total += length if header & 1 else block_size
    return total


def _check_lengths(streams: _Streams, column: int, encoding: int, room: int, harmless: int) -> int:
    """Compare the sum of lengths with the available bytes. Returns the number of lengths."""
    data, second = streams.unpacked(column, LENGTH), encoding in _SECOND_VERSIONS
    count, total = sum_of_lengths(data, second)
    allowed = min(max(room * _SLACK, harmless), _LARGEST)
    if total > allowed:
        count, total = sum_of_lengths(data, second, exact=True)
    if total > allowed:
        raise ValueError("lengths that add up to more than there is")
    return count


def _check_dictionary(streams: _Streams, column: int, encoding: int, entries: int) -> None:
    if encoding not in _DICTIONARIES:
        raise ValueError("a dictionary where there can be none")
    room = streams.bytes_of(column, DICTIONARY)
    if _check_lengths(streams, column, encoding, room, _HARMLESS_BYTES) < entries:
        raise ValueError("a dictionary with fewer entries than it claims")


def _check_keys(streams: _Streams, node: Node, encoding: int) -> None:
    """Check that no key of a map is null."""
    _, count = sum_of_lengths(streams.unpacked(node.column, LENGTH), encoding in _SECOND_VERSIONS, exact=True)
    data, position, flags = streams.unpacked(node.children[0].column, PRESENT), 0, 0
    while flags < count:
        if position + 1 >= len(data):
            raise ValueError("the flags of a map's keys are cut off")
        control = data[position]
        run = control + 3 if control < 128 else 256 - control
        held = data[position + 1 : position + 2] * run if control < 128 else data[position + 1 : position + 1 + run]
        position += 2 if control < 128 else 1 + run
        wanted = min(count - flags, len(held) * 8)
        ones = int.from_bytes(held, "big") >> (len(held) * 8 - wanted)
        if len(held) != run or ones != (1 << wanted) - 1:
            raise ValueError("a null among the keys of a map")
        flags += wanted
