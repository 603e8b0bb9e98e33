"""Check-and-put of a pointer: what becomes of the metadata file when the swap does not return."""

from __future__ import annotations

from uuid import uuid4

import pytest
from icefield import Schema
from icefield.abc import Committed
from icefield.builtin.memory import MemoryFileSystem
from icefield.metadata import TableMetadata, apply_updates, decode_metadata, new_table_metadata
from icefield.metadata.updates import SetProperties
from icefield.metastore import MetastoreStrategy
from icefield.types import LongType, NestedField


class Interrupted(MetastoreStrategy):
    """A pointer in memory, whose swap happens and then does not return."""

    pointer: str | None = None
    error: BaseException | None = None
    swaps = True

    def read_pointer(self) -> str | None:
        return self.pointer

    def swap_pointer(self, old: str | None, new: str) -> bool:
        if self.swaps:
            self.pointer = new
        if self.error is not None:
            raise self.error
        return True

    def drop(self) -> None:
        self.pointer = None


def made() -> tuple[Interrupted, TableMetadata, Committed]:
    location = f"memory://interrupted/{uuid4().hex}"
    metadata = new_table_metadata(Schema(NestedField(1, "id", LongType())), location=location, properties={})
    strategy = Interrupted(("db", "t"), location, MemoryFileSystem())
    outcome = strategy.commit(None, metadata)
    assert isinstance(outcome, Committed)
    return strategy, apply_updates(metadata, [SetProperties({"mine": "1"})]), outcome


@pytest.mark.spec("COMMIT-18")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()], ids=repr)
def test_an_interrupt_after_the_swap_leaves_a_table_that_opens(error: BaseException) -> None:
    strategy, changed, created = made()
    strategy.error = error
    with pytest.raises(type(error)):
        strategy.commit(created.pointer, changed)
    current = strategy.read_pointer()
    assert current is not None
    data = strategy.file_system.open_input(current).read()
    assert decode_metadata(data, current).properties["mine"] == "1"


@pytest.mark.spec("COMMIT-05")
def test_an_error_that_says_that_nothing_changed_leaves_no_file() -> None:
    strategy, changed, created = made()
    strategy.error, strategy.swaps = ValueError("refused"), False
    with pytest.raises(ValueError, match="refused"):
        strategy.commit(created.pointer, changed)
    assert [info.location for info in strategy.file_system.list(strategy.location)] == [created.pointer.location]
