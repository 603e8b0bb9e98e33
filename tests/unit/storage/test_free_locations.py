"""The location of a new table where files are already there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest
from icefield import FileIO, Plugins
from icefield.storage.neighbours import free_location


@pytest.mark.parametrize("by_folder", [True, False])
def test_only_a_strategy_that_finds_its_table_by_a_folder_takes_a_used_location(by_folder: bool) -> None:
    io = FileIO(Plugins.installed(), {})
    location = f"memory://{uuid4().hex}/t"
    with io.open_output(f"{location}/data/left-behind") as sink:
        sink.write(b"x")
    strategy = cast(Any, SimpleNamespace(folder=f"{location}/metadata" if by_folder else None))
    found = free_location(io, strategy, location)
    assert (found == location) is by_folder
    assert found.startswith(location)
