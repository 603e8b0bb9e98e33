"""A reader for formats with files of row blocks, which handles positions, splits, slices and pruning."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from icefield.abc import FormatReader, ReadRequest, Split
from icefield.errors import InvalidArgument, InvalidFile
from icefield.metadata.metrics import Metrics
from icefield.toolkit.arrow_forms import conform
from icefield.toolkit.batches import bare_batch, bounded, with_positions
from icefield.toolkit.damage import reporting_damage
from icefield.toolkit.filters import parts_that_may_match


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a file that can be read without the parts before it.

    ``offset``: its start in bytes, or a virtual offset (see ``virtual_blocks``). ``rows``: the number of its rows.
    """

    offset: int
    rows: int


def virtual_blocks(rows: int, size: int, block_rows: int) -> list[Block]:
    """Blocks of about ``block_rows`` rows for a file of ``size`` bytes that can only be read from its beginning.

    The rows count as spread evenly over the bytes, so that row ``n`` starts at ``n * size // rows``. All readers of
    the file must compute the same blocks, so ``block_rows`` is a constant of the format or stored in the file.
    """
    if rows < 0 or size < 0 or block_rows < 1:
        raise InvalidArgument(f"{rows} rows in {size} bytes cannot be divided by {block_rows}")
    if rows == 0:
        return []
    # Two blocks must not start at one byte, else a split that begins there would read both.
    block_rows = max(block_rows, -(-rows // max(size, 1)))
    starts = range(0, rows, block_rows)
    return [Block(first * size // rows, min(block_rows, rows - first)) for first in starts]


def starts_inside(block: Block, split: Split | None) -> bool:
    """Whether a block starts inside a split: by this rule, exactly one of several splits reads each block.

    The first byte of the split belongs to it and the byte after its last byte does not.
    """
    return split is None or split.start <= block.offset < split.start + split.length


class BlockReader(FormatReader):
    """A reader that needs only ``blocks`` and ``read_block`` and does the rest of a ``ReadRequest``.

    Batches of a block may be of any size, hold more columns than the request, and have any Arrow form of the values
    (see ``as_form``). This class slices, prunes and converts them, counts positions, and chooses blocks by the split
    and the filter. Errors of a block become ``InvalidFile`` (see ``reporting_damage``).
    """

    location: str
    """Where the file is, for messages. Set by ``__init__`` of the subclass."""

    errors: tuple[type[Exception], ...] = ()
    """Errors of the format's library for a damaged file, in addition to the errors that ``reporting_damage`` knows."""

    @property
    @abstractmethod
    def blocks(self) -> Sequence[Block]:
        """The blocks of the file, in file order, with ascending offsets that are inside the file."""

    @abstractmethod
    def read_block(self, number: int, columns: pa.Schema) -> Iterable[pa.RecordBatch]:
        """The rows of the ``number``-th block, from 0, with ``columns`` at least, in file order.

        ``columns`` is never empty. Raises ``ValueError``, or any error that ``reporting_damage`` treats as damage.
        """

    def block_metrics(self) -> Sequence[Metrics] | None:
        """The metrics of each block, by which a filter skips blocks; None if the file has no metrics."""
        return None

    def metrics(self) -> Metrics:
        """The number of rows alone. Override it where the file states more."""
        return Metrics(self.record_count)

    @property
    def record_count(self) -> int:
        """The rows of all blocks."""
        return sum(block.rows for block in self.blocks)

    @property
    def split_offsets(self) -> list[int] | None:
        """The offsets of the blocks."""
        return [block.offset for block in self.blocks] or None

    def read(self, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        """Yield the requested columns."""
        if request.batch_rows < 1:
            raise InvalidArgument("batch_rows must be at least 1")
        return self.__read(request)

    def __read(self, request: ReadRequest) -> Iterator[pa.RecordBatch]:
        first_row = 0
        metrics = None if request.row_filter is None else self.block_metrics()
        kept = None
        if request.row_filter is not None and metrics is not None:
            kept = parts_that_may_match(request.row_filter, request.columns, metrics)
        for number, block in enumerate(self.blocks):
            if starts_inside(block, request.split) and (kept is None or kept[number]):
                row = first_row
                for batch in bounded(self.__rows_of(number, block, request.columns), request.batch_rows):
                    yield with_positions(batch, row) if request.positions else batch
                    row += batch.num_rows
            first_row += block.rows

    def __rows_of(self, number: int, block: Block, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of a block in exactly ``columns``.

        Another number of rows than the block promises is refused, since all later positions would be wrong.
        """
        if not len(columns):
            yield bare_batch(block.rows)
            return
        rows = 0
        with reporting_damage(self.location, f"block {number}", *self.errors):
            batches = iter(self.read_block(number, columns))
        while True:
            with reporting_damage(self.location, f"block {number}", *self.errors):
                batch = next(batches, None)
                batch = None if batch is None else conform(batch, columns)
            if batch is None:
                break
            rows += batch.num_rows
            if rows > block.rows:
                break
            yield batch
        if rows != block.rows:
            message = f"{self.location}: block {number} does not hold the {block.rows:,} rows that it promises"
            raise InvalidFile(message, location=self.location)
