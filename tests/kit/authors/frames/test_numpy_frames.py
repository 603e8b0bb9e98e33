"""A frame library of another author is found by the hook that icefield-frames uses, beside its methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from authors.frames import numpy_frames
from icefield import Plugins, hookimpl, load_catalog
from icefield.abc import Event, ScanPlanned


class Planned:
    """Remembers the scans that were planned."""

    def __init__(self) -> None:
        self.scans: list[ScanPlanned] = []

    @hookimpl
    def icefield_events(self, event: Event) -> None:
        if isinstance(event, ScanPlanned):
            self.scans.append(event)


def test_an_adapter_reads_and_writes_with_its_own_filter_pushed_into_the_scan() -> None:
    planned = Planned()
    plugins = Plugins.installed(extra=[numpy_frames, planned])
    catalog = load_catalog("test", plugins=plugins, type="directory", warehouse="memory://numpy-frames")
    catalog.create_namespace("db")
    schema = pa.schema([("id", pa.int64()), ("kind", pa.string())])
    table: Any = catalog.create_table("db.t", schema, partition_spec=["kind"])
    table.arrays.append({"id": np.arange(4), "kind": ["a", "a", "b", "c"]})
    found = table.scan().to_arrays("id", where=pc.field("kind") == "a")
    assert {name: values.tolist() for name, values in found.items()} == {"id": [0, 1]}
    assert planned.scans[-1].files_planned == 1
    assert sorted(table.scan().to_arrays()) == ["id", "kind"]
    assert {"to_arrays", "lazy", "to_pandas"} <= set(dir(table.scan()))
