"""The stream for pyarrow's ORC writer, which completes the end of a file before it is written.

pyarrow writes no user metadata, so the last bytes of a file are buffered, and its footer is rewritten with the
metadata. pyarrow stores some timestamps in a form that only some readers understand (``early_timestamps``): from the
first of them on, whole stripes are buffered as well.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from icefield.abc import OutputStream

from icefield_orc.compression import pack, unpack
from icefield_orc.early_timestamps import rebuilt, rewritten_footer, rewritten_statistics, timestamp_columns
from icefield_orc.protobuf import items, write_bytes, write_item
from icefield_orc.schema import Node, read_tree
from icefield_orc.stripes import StripeFooter, column_sizes, parse_stripe_footer
from icefield_orc.tail import Stripe, Tail, parse_footer, read_postscript

_LARGEST_FOOTER = 1 << 30
_LONGEST_POSTSCRIPT = 256
_FOOTER_LENGTH, _STATISTICS_LENGTH = 1, 5
_USER_METADATA = 5
_IN_MEMORY = 64 << 20
_MOST_KEPT = 32 << 20
_PIECE = 4 << 20


class OrcSink:
    """A file that pyarrow writes to. After ``abort`` it discards all writes."""

    closed = False

    def __init__(self, stream: OutputStream, columns: int) -> None:
        self._stream = stream
        self._aborted = False
        self._held: Any = None
        self._held_from = 0
        self._length = 0
        # A stripe ends with its footer, and only the file's footer states how long that is: so the last bytes are kept.
        self._window = 4096 + 64 * columns
        self._last = b""
        self._ends: dict[int, bytes] = {}

    def write(self, data: Any) -> int:
        length = memoryview(data).nbytes
        self._length += length
        if self._aborted:
            return length
        if self._held is not None:
            self._held.write(data)
            return length
        tail = bytes(memoryview(data)[-self._window :])
        self._last = tail if len(tail) == self._window else (self._last + tail)[-self._window :]
        return self._stream.write(data)

    def tell(self) -> int:
        return self._length

    def hold(self) -> None:
        """Buffer further writes, unless they are buffered already."""
        if self._held is None:
            self._held_from = self._length
            self._held = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115

    def mark(self) -> None:
        """A stripe ends here."""
        if self._held is None and (len(self._ends) + 1) * self._window <= _MOST_KEPT:
            self._ends[self._length] = self._last

    def complete(self, metadata: Mapping[str, bytes], early_timestamps: bool) -> tuple[Tail, dict[int, int]]:
        """Write the buffered bytes, with user metadata in the footer.

        With ``early_timestamps`` the buffered stripes are rebuilt.

        Returns the parsed tail, and the sizes of columns by field id if they are known.
        """
        postscript = read_postscript(
            self._piece(max(self._held_from, self._length - _LONGEST_POSTSCRIPT), self._length)
        )
        below = self._length - 1 - postscript.length
        footer_start = below - postscript.footer_length
        statistics_start = footer_start - postscript.statistics_length
        footer, statistics = (
            unpack(self._piece(start, end), postscript.codec, postscript.block_size, _LARGEST_FOOTER)
            for start, end in ((footer_start, below), (statistics_start, footer_start))
        )
        for key, value in metadata.items():
            footer += write_bytes(_USER_METADATA, write_bytes(1, key.encode()) + write_bytes(2, value))
        tail = parse_footer(footer, postscript, self._length)
        root = read_tree(tail.types, tail.metadata)
        footers = [self._stripe_footer(stripe, tail) for stripe in tail.stripes]
        if early_timestamps:
            stripes = self._rebuild(tail, root, footer, footers)
            columns = timestamp_columns(root)
            footer = rewritten_footer(footer, stripes, columns)
            statistics = rewritten_statistics(statistics, columns)
        else:
            self._copy(self._held_from, statistics_start)
        packed = [pack(part, postscript.codec, postscript.block_size) for part in (statistics, footer)]
        script = _postscript(self._piece(below, self._length - 1), len(packed[1]), len(packed[0]))
        self._stream.write(b"".join(packed) + script)
        known = [each for each in footers if each is not None]
        sizes = column_sizes(known, root) if len(known) == len(footers) else {}
        self._held.close()
        return parse_footer(footer, postscript, self._stream.tell()), sizes

    def _rebuild(self, tail: Tail, root: Node, footer: bytes, footers: list[StripeFooter | None]) -> list[Stripe]:
        """Rebuild the buffered stripes. Returns the new positions of all stripes."""
        stripes: list[Stripe] = []
        end = self._held_from
        for number, stripe in enumerate(tail.stripes):
            if stripe.start < self._held_from:
                stripes.append(stripe)
                continue
            self._copy(end, stripe.start)
            end = stripe.start + stripe.length
            body, made, footers[number] = rebuilt(self._piece(stripe.start, end), stripe, tail, root, footer)
            stripes.append(replace(made, start=self._stream.tell()))
            self._stream.write(body)
        return stripes

    def _stripe_footer(self, stripe: Stripe, tail: Tail) -> StripeFooter | None:
        """The footer of a stripe, None where its bytes were not kept."""
        end = stripe.start + stripe.length
        if end - stripe.footer_length >= self._held_from:
            packed = self._piece(end - stripe.footer_length, end)
        else:
            packed = self._ends.get(end, b"")[-stripe.footer_length :]
        return parse_stripe_footer(packed, tail) if len(packed) == stripe.footer_length else None

    def _piece(self, start: int, end: int) -> bytes:
        """Bytes that are kept back, by their place in the file."""
        self._held.seek(start - self._held_from)
        data: bytes = self._held.read(end - start)
        return data

    def _copy(self, start: int, end: int) -> None:
        for at in range(start, end, _PIECE):
            self._stream.write(self._piece(at, min(end, at + _PIECE)))

    def publish(self) -> None:
        self._stream.close()

    def abort(self) -> None:
        self._aborted = True
        if self._held is not None:
            self._held.close()
        self._stream.abort()

    # pyarrow calls these methods of a file, and closes the file with its writer; but only ``publish`` may close the
    # stream.
    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def _postscript(old: bytes, footer_length: int, statistics_length: int) -> bytes:
    """Return a postscript with new lengths of the footer and the statistics, followed by its own length."""
    stated = {_FOOTER_LENGTH: footer_length, _STATISTICS_LENGTH: statistics_length}
    message = b"".join(write_item(number, stated.get(number, value)) for number, value in items(old))
    return message + bytes([len(message)])
