"""Check-and-put of a view's pointer: the metadata file when the swap ends in an error."""

from __future__ import annotations

from uuid import uuid4

import pytest
from icefield import FileIO, MemoryFileSystem, Plugins, Schema
from icefield.abc import TableName, ViewProposal
from icefield.errors import CommitStateUnknown, StorageError, ViewExists
from icefield.metadata import ViewMetadata, ViewRepresentation, ViewVersion, new_view_metadata
from icefield.types import LongType, NestedField
from icefield_sql.metastore_views import MetastoreViews

VIEW = ("db", "v")
ERRORS = [KeyError("bug"), StorageError("the lock could not be given back"), StorageError("reset", retryable=True)]


class Pointers(MetastoreViews):
    """A pointer in memory, whose swap is made, or is not, and then ends in an error."""

    pointer: str | None = None
    error: Exception | None = None
    swaps, can_read = True, True

    def read_pointer(self, view: TableName) -> str | None:
        if not self.can_read:
            raise StorageError("down", retryable=True)
        return self.pointer

    def swap_pointer(self, view: TableName, old: str | None, new: str) -> bool:
        if self.swaps:
            self.pointer = new
        if self.error is not None:
            raise self.error
        return True


def made() -> tuple[Pointers, ViewMetadata]:
    query = (ViewRepresentation(type="sql", sql="SELECT 1 AS id", dialect="spark"),)
    metadata = new_view_metadata(
        Schema(NestedField(1, "id", LongType())),
        ViewVersion(1, 1, 0, {}, query, ("db",)),
        f"memory://views/{uuid4().hex}",
    )
    return Pointers(FileIO(Plugins.installed())), metadata


def files(metadata: ViewMetadata) -> list[str]:
    return [each.location for each in MemoryFileSystem().list_files(metadata.location)]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_error_after_the_swap_of_a_view_costs_no_file_and_is_no_failure(error: Exception) -> None:
    views, metadata = made()
    views.error = error
    committed = views.commit(VIEW, None, ViewProposal(metadata))
    assert committed is not None
    assert files(metadata) == [committed.location] == [views.pointer]


@pytest.mark.parametrize("swaps", [True, False])
@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_the_state_of_a_view_is_unknown_when_the_look_after_an_error_fails(error: Exception, swaps: bool) -> None:
    views, metadata = made()
    views.error, views.swaps, views.can_read = error, swaps, False
    with pytest.raises(CommitStateUnknown):
        views.commit(VIEW, None, ViewProposal(metadata))
    assert len(files(metadata)) == 1


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_error_without_a_swap_of_a_view_leaves_no_file(error: Exception) -> None:
    views, metadata = made()
    views.error, views.swaps = error, False
    with pytest.raises(type(error)):
        views.commit(VIEW, None, ViewProposal(metadata))
    assert files(metadata) == []


def test_a_catalog_that_says_that_the_view_exists_is_believed() -> None:
    views, metadata = made()
    views.pointer, views.error, views.swaps = "memory://views/other.json", ViewExists("there", view=VIEW), False
    with pytest.raises(ViewExists):
        views.commit(VIEW, None, ViewProposal(metadata))
    views.error = StorageError("reset")
    with pytest.raises(CommitStateUnknown):
        views.commit(VIEW, None, ViewProposal(metadata))
    assert len(files(metadata)) == 1
