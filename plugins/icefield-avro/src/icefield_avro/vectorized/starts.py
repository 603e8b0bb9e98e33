"""Finding where each record starts, with proof.

A block states how many records it holds but not where they start. Several walkers go through the blocks together. Each
begins at a certain start of a record (the start of a block) or at a guess, and ends at the next such place. The walker
from the start of a block is proved, and each walker that a proved one meets. Proved walkers pass exactly the records:
a wrong guess is never met and costs time only.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from icefield_avro.arrays import Vector
from icefield_avro.skipping import Skip
from icefield_avro.varints import Malformed, Truncated
from icefield_avro.vectorized.byte_buffer import ByteBuffer, Unproven
from icefield_avro.vectorized.guessing import guess_starts
from icefield_avro.vectorized.nested import RecordStep

_FEW_WALKERS: Final = 24


def marks_of(buffer: ByteBuffer, counts: Vector, record: RecordStep) -> Vector:
    """The places where records start for certain or by a guess, ascending."""
    begins = _begins(buffer)
    guesses = guess_starts(buffer, begins, counts, record)
    if not len(guesses):
        return begins
    marks: Vector = np.sort(np.concatenate([begins, guesses]))
    marks = marks[np.concatenate([[True], marks[1:] != marks[:-1]])]
    return marks


def one_for_each_record(marks: Vector, buffer: ByteBuffer, counts: Vector) -> bool:
    """Whether each block has exactly as many marks as records."""
    return bool(np.array_equal(np.diff(np.searchsorted(marks, buffer.ends), prepend=0), counts))


def find_starts(buffer: ByteBuffer, marks: Vector, counts: Vector, record: RecordStep, slow_skip: Skip) -> Vector:
    """Where the records of the blocks start: as many in each block as ``counts`` says, and they fill it.

    Raises ``Unproven`` if this is impossible.
    """
    walk = _Walk(buffer, marks, record, slow_skip)
    walk.run()
    starts = walk.proved_starts(_begins(buffer))
    if not one_for_each_record(starts, buffer, counts):
        raise Unproven("another number of records than the blocks claim")
    return starts


def _begins(buffer: ByteBuffer) -> Vector:
    return np.concatenate([[0], buffer.ends[:-1]])


class _Walk:
    """Walkers from each mark to the next mark they meet, or to the end of their block."""

    def __init__(self, buffer: ByteBuffer, marks: Vector, record: RecordStep, slow_skip: Skip) -> None:
        self.buffer = buffer
        self.record = record
        self.slow_skip = slow_skip
        self.marks = np.append(marks, buffer.end)
        self.count = len(marks)
        self.block_end = buffer.ends[np.searchsorted(buffer.ends, marks, side="right")]
        self.met = np.full(self.count, -1)  # the mark that each walker met, -1: none
        self._passed: list[tuple[Vector, Vector]] = []

    def run(self) -> None:
        """Let all walkers arrive."""
        who = np.arange(self.count)
        at = self.marks[:-1].copy()
        goal = who + 1
        while len(who) > _FEW_WALKERS:
            self._passed.append((at, who))
            at = self.record.skip(self.buffer, at)
            reached = at >= self.marks[goal]
            if np.count_nonzero(reached):
                goal, going = self._arrive(at, who)
                at, who, goal = at[going], who[going], goal[going]
        for walker, position in zip(who.tolist(), at.tolist(), strict=True):
            self._go_alone(walker, position)

    def _arrive(self, at: Vector, who: Vector) -> tuple[Vector, Vector]:
        """Record the walkers that met a mark. Returns each walker's next mark, and a mask of walkers that go on."""
        goal = np.searchsorted(self.marks, at).clip(max=self.count)
        inside = at <= self.block_end[who]
        met = (at == self.marks[goal]) & inside
        self.met[who[met]] = goal[met]
        return goal, inside & ~met

    def _go_alone(self, walker: int, position: int) -> None:
        passed = []
        end = int(self.block_end[walker])
        last = int(np.searchsorted(self.marks, end, side="right"))
        marks = {mark: index for index, mark in enumerate(self.marks[walker + 1 : last].tolist(), walker + 1)}
        raw, skip = self.buffer.raw, self.slow_skip
        try:
            while position not in marks and position < end:
                passed.append(position)
                position = skip(raw, position)
        except (Malformed, Truncated):
            return
        if len(passed):
            self._passed.append((np.array(passed), np.full(len(passed), walker)))
        if position <= end:
            self.met[walker] = marks.get(position, -1)

    def proved_starts(self, begins: Vector) -> Vector:
        """The records from the start of each block to its end, over the marks that were met."""
        proved = np.zeros(self.count, bool)
        is_begin = np.zeros(self.count + 1, bool)
        firsts = np.searchsorted(self.marks, begins)
        is_begin[firsts] = True
        is_begin[self.count] = True
        met = self.met.tolist()
        stops = is_begin.tolist()
        for walker in firsts.tolist():
            while True:
                proved[walker] = True
                walker = met[walker]
                if walker < 0:
                    raise Unproven("records that do not fill their block")
                if stops[walker]:
                    break
        at = np.concatenate([positions for positions, _ in self._passed])
        who = np.concatenate([walkers for _, walkers in self._passed])
        return np.sort(at[proved[who]])
